package twinlake.reading;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.function.Function;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CodePointCharStream;
import org.antlr.v4.runtime.CommonTokenStream;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.tree.ErrorNode;
import org.antlr.v4.runtime.tree.ParseTreeListener;
import org.antlr.v4.runtime.tree.TerminalNode;
import org.apache.spark.sql.catalyst.analysis.PosParameterizedQuery;
import org.apache.spark.sql.catalyst.parser.AbstractParser$;
import org.apache.spark.sql.catalyst.parser.AbstractParser;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseErrorListener$;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.PositionalParameterContext;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.SqlBaseParser;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkSqlParser;
import org.apache.spark.sql.internal.SqlApiConf$;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's parser with an end: a statement may be so long, nested so deeply, and take so much of the processor.
 *
 * <p>To decide what a bracket begins the parser looks ahead, so what it takes grows with length times depth, and more
 * where it fails; no count of characters alone bounds it. So the time is bounded as well, and whoever is interrupted,
 * because its client has left, ends here too. Delta's grammar is left out: none of it reads.
 */
final class BoundedParser extends SparkSqlParser {
  static final int LONGEST = 1_000_000;
  static final int MOST_TOKENS = 100_000;
  /** Rules of the grammar inside one another: a bracket is four, a subquery eleven, an operator of a chain one. */
  static final int DEEPEST = 500;
  static final int DEEPEST_BRACKETS = 100;
  static final long LONGEST_NS = 1_000_000_000;

  private static final int LOOK = 0x7;
  private static final long LOOK_NS = 10_000_000;
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static final String BOUNDED = "a statement is bounded, so that it keeps nobody else from theirs";
  private static final String SHORTER = "several shorter ones, with temporary views over JDBC for instance";

  @Override
  public <T> T parse(String text, Function1<SqlBaseParser, T> toResult) {
    if (text.length() > LONGEST) {
      throw tooMuch("a text of more than " + LONGEST + " characters");
    }
    Bounds bounds = new Bounds();
    SqlBaseLexer lexer = bounds.lexer(text);
    lexer.removeErrorListeners();
    lexer.addErrorListener(ParseErrorListener$.MODULE$);
    CommonTokenStream tokens = bounds.tokens(lexer);
    SqlBaseParser parser = new SqlBaseParser(tokens);
    AbstractParser.configureParser(parser, text, tokens, SqlApiConf$.MODULE$.get());
    parser.addParseListener(bounds);
    try {
      return AbstractParser.executeWithTwoStageStrategy(parser, tokens, toResult);
    } catch (StackOverflowError deep) {
      throw tooDeep();
    } catch (Throwable failed) {
      if (bounds.exceeded != null) {
        throw bounds.exceeded; // and its listeners have failed on what was left half way
      }
      throw BoundedParser.<RuntimeException>unchecked(named(failed, text));
    } finally {
      AbstractParser$.MODULE$.maybeClearParserCaches(parser, SqlApiConf$.MODULE$.get());
    }
  }

  /** The plan of a statement is as deep as its chains of joins, which the grammar lists flat. */
  @Override
  public LogicalPlan parsePlan(String text) {
    LogicalPlan parsed = super.parsePlan(text);
    Trees.walk(parsed, DEEPEST, Growth.windows());
    Growth.check(parsed);
    return parsed;
  }

  /** The analyzer binds them; Spark's own way would put their text into the statement by one more parser. */
  @Override
  public LogicalPlan parsePlanWithParameters(String text, ParameterContext parameters) {
    LogicalPlan parsed = parsePlan(text);
    return parameters instanceof PositionalParameterContext given && !CollectionConverters.asJava(given.params()).isEmpty()
        ? new PosParameterizedQuery(parsed, Parameters.inOrder(given.params())) : parsed;
  }

  /** A type as functions take it, or columns with theirs; of a text that is neither Spark says so. */
  void checkType(String text) {
    for (Function<String, ?> parse : List.<Function<String, ?>>of(this::parseDataType, this::parseTableSchema)) {
      try {
        parse.apply(text);
        return;
      } catch (Refused bounded) {
        throw bounded;
      } catch (Exception other) {
        continue;
      }
    }
  }

  private static Throwable named(Throwable failed, String text) {
    return failed instanceof ParseException one && one.command().isEmpty() ? one.withCommand(text) : failed;
  }

  @SuppressWarnings("unchecked")
  static <E extends Throwable> RuntimeException unchecked(Throwable failed) throws E {
    throw (E) failed; // Scala knows no checked exceptions
  }

  static Refused tooMuch(String what) {
    return new Refused(what, BOUNDED, SHORTER);
  }

  static Refused tooDeep() {
    return tooMuch("a statement nested more than " + DEEPEST + " levels deep");
  }

  /** What one statement has used so far. */
  private static final class Bounds implements ParseTreeListener {
    final long until = THREADS.getCurrentThreadCpuTime() + LONGEST_NS;
    long looked = System.nanoTime();
    int steps;
    int tokens;
    int brackets;
    int types;
    int previous;
    int depth;
    RuntimeException exceeded;

    SqlBaseLexer lexer(String text) {
      return new SqlBaseLexer(new Characters(CharStreams.fromString(text), this)) {
        @Override
        public Token nextToken() {
          Token found = super.nextToken();
          if (found.getChannel() == Token.DEFAULT_CHANNEL) {
            count(found.getType());
          }
          return found;
        }
      };
    }

    CommonTokenStream tokens(SqlBaseLexer lexer) {
      return new CommonTokenStream(lexer) {
        @Override
        public int LA(int ahead) {
          step();
          return super.LA(ahead);
        }

        @Override
        public void consume() {
          step();
          super.consume();
        }
      };
    }

    /** The clock of the processor is asked seldom: it costs more than most steps. */
    void step() {
      if ((++steps & LOOK) == 0 && System.nanoTime() - looked > LOOK_NS) {
        looked = System.nanoTime();
        if (Thread.currentThread().isInterrupted()) {
          throw exceed(Ending.cancelled());
        }
        if (THREADS.getCurrentThreadCpuTime() > until) {
          throw exceed(tooMuch("a statement that takes more than a second to parse"));
        }
      }
    }

    private void count(int type) {
      if (++tokens > MOST_TOKENS) {
        throw exceed(tooMuch("a statement of more than " + MOST_TOKENS + " words and signs"));
      }
      switch (type) {
        case SqlBaseLexer.LT -> types += isTypes(previous) ? 1 : 0;
        case SqlBaseLexer.GT -> types = Math.max(0, types - 1);
        case SqlBaseLexer.LEFT_PAREN, SqlBaseLexer.LEFT_BRACKET, SqlBaseLexer.CASE -> brackets++;
        case SqlBaseLexer.RIGHT_PAREN, SqlBaseLexer.RIGHT_BRACKET, SqlBaseLexer.END -> brackets--;
        default -> { }
      }
      previous = type;
      if (brackets + types > DEEPEST_BRACKETS) {
        throw exceed(tooMuch("a statement with more than " + DEEPEST_BRACKETS + " brackets or CASEs inside one another"));
      }
    }

    private static boolean isTypes(int type) {
      return type == SqlBaseLexer.ARRAY || type == SqlBaseLexer.MAP || type == SqlBaseLexer.STRUCT;
    }

    private RuntimeException exceed(RuntimeException why) {
      exceeded = why;
      return why;
    }

    @Override
    public void enterEveryRule(ParserRuleContext rule) {
      if (counts(rule) && ++depth > DEEPEST) {
        throw exceed(tooDeep());
      }
    }

    @Override
    public void exitEveryRule(ParserRuleContext rule) {
      if (counts(rule)) {
        depth--;
      }
    }

    /** Of many AND and OR Spark makes a tree that is not deep. */
    private static boolean counts(ParserRuleContext rule) {
      return !(rule instanceof SqlBaseParser.LogicalBinaryContext);
    }

    @Override
    public void visitTerminal(TerminalNode node) {}

    @Override
    public void visitErrorNode(ErrorNode node) {}
  }

  private static final class Characters extends UpperCaseCharStream {
    private final Bounds bounds;

    Characters(CodePointCharStream text, Bounds bounds) {
      super(text);
      this.bounds = bounds;
    }

    @Override
    public void consume() {
      bounds.step();
      super.consume();
    }
  }
}
