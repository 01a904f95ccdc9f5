package twinlake.reading;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.SimpleFunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.ArrayRepeat;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Multiply;
import org.apache.spark.sql.catalyst.expressions.Sequence;
import org.apache.spark.sql.catalyst.expressions.StringLPad;
import org.apache.spark.sql.catalyst.expressions.StringRPad;
import org.apache.spark.sql.catalyst.expressions.StringRepeat;
import org.apache.spark.sql.catalyst.expressions.StringSpace;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.FunctionConverters;
import twinlake.lake.Seqs;

/**
 * One value is bounded: a function that makes as much as an argument says would take all memory, and the server with it.
 *
 * <p>Spark computes what is constant while it looks at a statement, some of it before any rule is asked. So the bound
 * is where a function is made: a size that is a number is refused there, one that is computed when it is known.
 */
final class Sizes {
  /** Of characters, elements or bytes of one value. */
  static final long LARGEST = 1_000_000;
  /** Of what functions inside one another make of constants. */
  private static final double LARGEST_BYTES = 64e6;
  private static final Pattern WIDE = Pattern.compile("\\d{5}");

  /** An argument and its bounds. */
  private record Bound(int argument, double least, double largest) {
    Bound(int argument, double largest) {
      this(argument, -largest, largest);
    }
  }

  /** What makes as much as an argument says, in each row again. */
  private static final Map<String, Bound> COMPUTED = Map.of(
      "repeat", new Bound(1, LARGEST), "array_repeat", new Bound(1, LARGEST), "lpad", new Bound(1, LARGEST),
      "rpad", new Bound(1, LARGEST), "space", new Bound(0, LARGEST), "format_number", new Bound(1, 1_000));

  /** What Spark wants as a constant, and evaluates at once. */
  private static final Map<String, Bound> CONSTANT = Map.ofEntries(
      Map.entry("randstr", new Bound(0, LARGEST)), Map.entry("stack", new Bound(0, 1_000)),
      Map.entry("round", new Bound(1, 1_000)), Map.entry("bround", new Bound(1, 1_000)),
      Map.entry("ceil", new Bound(1, 1_000)), Map.entry("ceiling", new Bound(1, 1_000)),
      Map.entry("floor", new Bound(1, 1_000)), Map.entry("histogram_numeric", new Bound(1, 10_000)),
      Map.entry("approx_count_distinct", new Bound(1, 0.001, 1)),
      Map.entry("count_min_sketch", new Bound(1, 0.00001, 1)),
      Map.entry("theta_sketch_agg", new Bound(1, 20)), Map.entry("theta_union_agg", new Bound(1, 20)));

  /** Which argument is the text of a type: Spark parses it by a parser that is not a session's. */
  private static final Map<String, Integer> TYPES =
      Map.of("from_json", 1, "from_csv", 1, "variant_get", 2, "try_variant_get", 2);

  private Sizes() {}

  /** From now on, in the sessions that are made with these functions. */
  static void bound(SimpleFunctionRegistry registry) {
    COMPUTED.forEach((name, bound) -> wrap(registry, name, given -> computed(name, bound, given)));
    CONSTANT.forEach((name, bound) -> wrap(registry, name, given -> constant(name, bound, given)));
    wrap(registry, "sequence", Sizes::sequence);
    TYPES.forEach((name, argument) -> wrap(registry, name, given -> type(name, argument, given)));
    wrap(registry, "format_string", Sizes::format);
    wrap(registry, "printf", Sizes::format);
    wrap(registry, "replace", Sizes::replace);
    wrap(registry, "regexp_replace", Sizes::replace);
  }

  private interface Check {
    List<Expression> bounded(List<Expression> given);
  }

  private static void wrap(SimpleFunctionRegistry registry, String name, Check check) {
    FunctionIdentifier known = new FunctionIdentifier(name);
    var info = registry.lookupFunction(known);
    var builder = registry.lookupFunctionBuilder(known);
    if (info.isEmpty() || builder.isEmpty()) {
      throw new NotTested("there is no function " + name);
    }
    Function1<Seq<Expression>, Expression> made = builder.get();
    registry.internalRegisterFunction(known, info.get(), FunctionConverters.asScalaFromFunction(given -> {
      List<Expression> bounded = check.bounded(CollectionConverters.asJava(given));
      Expression one = made.apply(Seqs.of(bounded));
      if (bytes(one) > LARGEST_BYTES) {
        throw tooLarge(name, "would make more than " + (long) LARGEST_BYTES + " bytes");
      }
      return one;
    }));
  }

  private static List<Expression> computed(String name, Bound bound, List<Expression> given) {
    if (given.size() <= bound.argument) {
      return given; // Spark says what is missing
    }
    Expression size = given.get(bound.argument);
    OptionalDouble known = number(size);
    if (known.isPresent()) {
      check(name, bound, known.getAsDouble());
      return given;
    }
    boolean isText = size.dataType() instanceof StringType && !name.equals("format_number"); // whose text is a pattern
    return isText || size.dataType() instanceof NumericType
        ? with(given, bound.argument, guarded(name, bound, size)) : given;
  }

  private static List<Expression> constant(String name, Bound bound, List<Expression> given) {
    if (given.size() > bound.argument) {
      Expression size = given.get(bound.argument);
      OptionalDouble known = number(size);
      if (known.isPresent()) {
        check(name, bound, known.getAsDouble());
      } else if (size.foldable()) {
        throw tooLarge(name, "needs a size as a number");
      }
    }
    return given;
  }

  private static List<Expression> sequence(List<Expression> given) {
    if (given.size() < 2) {
      return given;
    }
    OptionalDouble start = number(given.get(0));
    OptionalDouble stop = number(given.get(1));
    OptionalDouble step = given.size() > 2 ? number(given.get(2)) : OptionalDouble.of(1);
    if (start.isEmpty() || step.isEmpty() || step.getAsDouble() == 0) {
      return given;
    }
    double reach = LARGEST * Math.abs(step.getAsDouble());
    Bound bound = new Bound(1, start.getAsDouble() - reach, start.getAsDouble() + reach);
    if (stop.isPresent()) {
      if (stop.getAsDouble() < bound.least || stop.getAsDouble() > bound.largest) {
        throw tooLarge("sequence", "would make more");
      }
      return given;
    }
    boolean whole = given.get(1).dataType() instanceof IntegralType;
    return whole ? with(given, 1, guarded("sequence", bound, given.get(1))) : given;
  }

  private static List<Expression> type(String name, int argument, List<Expression> given) {
    Expression type = given.size() > argument ? given.get(argument) : null;
    if (type instanceof Literal text) {
      new BoundedParser().checkType(String.valueOf(text.value()));
    } else if (type != null && type.foldable() && !type.prettyName().startsWith("schema_of_")) {
      throw tooLarge(name, "needs a type as a text");
    }
    return given;
  }

  private static List<Expression> format(List<Expression> given) {
    if (!given.isEmpty() && given.get(0).foldable()
        && (!(given.get(0) instanceof Literal text) || WIDE.matcher(String.valueOf(text.value())).find())) {
      throw tooLarge("format_string", "needs widths below 10000, in a text");
    }
    return given;
  }

  private static List<Expression> replace(List<Expression> given) {
    double made = given.size() > 2 ? bytes(given.get(0)) * Math.max(1, bytes(given.get(2))) : 0;
    if (made > LARGEST_BYTES && given.get(0).foldable()) {
      throw tooLarge("replace", "would make more than " + (long) LARGEST_BYTES + " bytes");
    }
    return given;
  }

  /** The value of numbers and what is reckoned from them; of nothing else, as to evaluate that may be what kills. */
  private static OptionalDouble number(Expression of) {
    Double found = of.resolved() && isArithmetic(of) ? asNumber(of.eval(null)) : null;
    return found == null ? OptionalDouble.empty() : OptionalDouble.of(found);
  }

  private static Double asNumber(Object value) {
    if (value instanceof Number one) {
      return one.doubleValue();
    }
    if (value instanceof Decimal one) {
      return one.toDouble();
    }
    if (value instanceof CalendarInterval one) {
      return one.months * 2_592e9 + one.days * 86_400e6 + one.microseconds;
    }
    return null;
  }

  private static boolean isArithmetic(Expression of) {
    return of instanceof Literal
        || (of instanceof Cast || of instanceof UnaryMinus || of instanceof Add || of instanceof Subtract || of instanceof Multiply)
            && CollectionConverters.asJava(of.children()).stream().allMatch(Sizes::isArithmetic);
  }

  /** Of one value, as far as constants tell. */
  private static double bytes(Expression of) {
    if (of instanceof Literal literal) {
      return literal.value() instanceof UTF8String text ? text.numBytes() : 16;
    }
    double parts = CollectionConverters.asJava(of.children()).stream().mapToDouble(Sizes::bytes).sum();
    if (of instanceof StringRepeat || of instanceof ArrayRepeat) {
      return bytes(child(of, 0)) * Math.max(1, number(child(of, 1)).orElse(1));
    }
    if (of instanceof StringLPad
        || of instanceof StringRPad) {
      return number(child(of, 1)).orElse(16);
    }
    if (of instanceof StringSpace) {
      return number(child(of, 0)).orElse(16);
    }
    if (of instanceof Sequence) {
      OptionalDouble start = number(child(of, 0));
      OptionalDouble stop = number(child(of, 1));
      return start.isPresent() && stop.isPresent() ? 8 * Math.min(LARGEST, Math.abs(stop.getAsDouble() - start.getAsDouble())) : 16;
    }
    return 16 + parts;
  }

  /** Spark takes texts for numbers. */
  private static Expression guarded(String name, Bound bound, Expression size) {
    Expression number = size.dataType() instanceof StringType
        ? Cast$.MODULE$.apply(size, DataTypes.LongType, true) : size;
    return new BoundedSize(number, name, bound.least, bound.largest);
  }

  private static void check(String name, Bound bound, double size) {
    if (size < bound.least || size > bound.largest) {
      throw tooLarge(name, "got " + (size == Math.rint(size) ? String.valueOf((long) size) : String.valueOf(size)));
    }
  }

  static Refused tooLarge(String function, String what) {
    return new Refused(
        "a value as large as that of " + function, function + " " + what + ", and one value has at most " + LARGEST
            + " elements or characters, because all readers share the memory", "rows, of range(...) for instance");
  }

  private static Expression child(Expression of, int number) {
    return CollectionConverters.asJava(of.children()).get(number);
  }

  private static List<Expression> with(List<Expression> given, int argument, Expression one) {
    List<Expression> changed = new ArrayList<>(given);
    changed.set(argument, one);
    return changed;
  }
}
