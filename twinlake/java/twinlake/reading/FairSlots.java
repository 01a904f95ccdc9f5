package twinlake.reading;

import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;

/**
 * A statement without a slot gets one from the statement that holds most. Spark shares slots when they become free, and
 * takes none away: one statement of many long tasks would hold them all until it has ended.
 *
 * <p>The task that began last is ended, for which Spark starts another later; of its last task no statement is robbed.
 * A statement is a pool: by Spark's turns a slot goes to the pool that holds least, where it would otherwise go to the
 * next of many subqueries of the statement that it was taken from.
 */
public final class FairSlots extends SparkListener {
  private static final long LOOK_MS = 100;
  private static final long LONGEST_WAIT_NS = 250_000_000; // each of its stages waits again
  private static final String POOL = "spark.scheduler.pool";
  private static final int POOLS = 128; // Spark keeps each for ever

  private final SparkContext context;
  private final Map<Integer, Statement> byStage = new HashMap<>(); // with tasks that run on after a stage has ended
  private long allEndingSince = 0;
  private final Map<String, Statement> statements = new HashMap<>();

  private static final class Statement {
    final Set<Integer> stages = new HashSet<>();
    final TreeMap<Long, Integer> tasks = new TreeMap<>(); // to their stages, by number: the last began last
    final Set<Long> ending = new HashSet<>();
    long idleSince = System.nanoTime();

    int held() {
      return tasks.size() - ending.size();
    }

    /** Spark ends what runs of a stage that is over. */
    boolean isToEnd(long task) {
      return !stages.contains(tasks.get(task)) || ending.contains(task);
    }

    boolean waits(long now) {
      return !stages.isEmpty() && tasks.isEmpty() && now - idleSince > LONGEST_WAIT_NS;
    }
  }

  private FairSlots(SparkContext context) {
    this.context = context;
  }

  /** From now on, for all statements of this context. */
  public static FairSlots share(SparkContext context) {
    FairSlots slots = new FairSlots(context);
    context.addSparkListener(slots);
    Thread looking = new Thread(slots::watch, "fair slots");
    looking.setDaemon(true);
    looking.start();
    return slots;
  }

  /** For how long every slot has been held by a task that was killed and goes on; 0 while one is not. */
  public synchronized long lostMs() {
    return allEndingSince == 0 ? 0 : (System.nanoTime() - allEndingSince) / 1_000_000;
  }

  /** What this thread and its subqueries compute from here on is one statement. */
  static void begin(SparkContext context) {
    context.setLocalProperty(POOL, "statement " + Thread.currentThread().getId() % POOLS);
  }

  static void end(SparkContext context) {
    context.setLocalProperty(POOL, null);
  }

  @Override
  public synchronized void onStageSubmitted(SparkListenerStageSubmitted event) {
    int stage = event.stageInfo().stageId();
    Statement statement = statements.computeIfAbsent(nameOf(event.properties(), stage), name -> new Statement());
    statement.stages.add(stage);
    byStage.put(stage, statement);
  }

  @Override
  public synchronized void onTaskStart(SparkListenerTaskStart event) {
    of(event.stageId()).tasks.put(event.taskInfo().taskId(), event.stageId());
  }

  @Override
  public synchronized void onTaskEnd(SparkListenerTaskEnd event) {
    Statement statement = of(event.stageId());
    statement.tasks.remove(event.taskInfo().taskId());
    statement.ending.remove(event.taskInfo().taskId());
    statement.idleSince = System.nanoTime();
    forgetEnded();
  }

  @Override
  public synchronized void onStageCompleted(SparkListenerStageCompleted event) {
    Statement statement = of(event.stageInfo().stageId());
    statement.stages.remove(event.stageInfo().stageId());
    statement.idleSince = System.nanoTime();
    forgetEnded();
  }

  /** A task may begin, or end, when its stage has ended and is forgotten. */
  private Statement of(int stage) {
    return byStage.computeIfAbsent(
        stage, number -> statements.computeIfAbsent("stage " + number, name -> new Statement()));
  }

  private void forgetEnded() {
    statements.values().removeIf(one -> one.stages.isEmpty() && one.tasks.isEmpty());
    byStage.values().retainAll(statements.values());
  }

  private static String nameOf(Properties properties, int stage) {
    String pool = properties == null ? null : properties.getProperty(POOL);
    return pool == null ? "stage " + stage : pool;
  }

  private void watch() {
    while (!context.isStopped()) {
      look(System.nanoTime());
      try {
        Thread.sleep(LOOK_MS);
      } catch (InterruptedException ended) {
        return;
      }
    }
  }

  private synchronized void look(long now) {
    if (statements.values().stream().mapToInt(one -> one.tasks.size()).sum() < context.defaultParallelism()) {
      allEndingSince = 0;
      return; // one is free: what has no task yet is on its way
    }
    if (!statements.values().stream().allMatch(one -> one.tasks.keySet().stream().allMatch(one::isToEnd))) {
      allEndingSince = 0;
    } else if (allEndingSince == 0) {
      allEndingSince = now;
    }
    for (Statement waiting : statements.values()) {
      if (waiting.waits(now)) {
        statements.values().stream().max(Comparator.comparingInt(Statement::held)).ifPresent(this::takeOne);
        waiting.idleSince = now; // that slot may take a moment, or somebody else
      }
    }
  }

  private void takeOne(Statement from) {
    if (from.held() > 1) {
      long last = from.tasks.descendingKeySet().stream().filter(task -> !from.ending.contains(task)).findFirst().get();
      if (context.killTaskAttempt(last, true, "another statement has no slot")) {
        from.ending.add(last);
      } else {
        from.tasks.remove(last); // it has ended
      }
    }
  }
}
