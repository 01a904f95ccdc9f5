package twinlake.reading;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.SparkEnv;
import org.apache.spark.memory.MemoryManager;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;

/**
 * Which statements run over JDBC, how one of them is ended, and what memory each statement holds, over HTTP as well.
 *
 * <p>The memory is Spark's execution memory: what the statement's tasks hold at this moment to sort, join, group and
 * exchange rows. Tasks and their memory manager are in this process, so it is asked itself. What a task has in plain
 * objects, and what a small statement computes without a task, nobody counts.
 */
public final class RunningStatements extends SparkListener {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, Statement> OVER_JDBC = new ConcurrentHashMap<>();

  private final Map<Integer, String> stages = new ConcurrentHashMap<>();
  private final Map<Long, String> tasks = new ConcurrentHashMap<>();

  private RunningStatements() {}

  /** Knows from now on whose the tasks are that run in this context. */
  public static RunningStatements of(SparkContext context) {
    RunningStatements made = new RunningStatements();
    context.addSparkListener(made);
    return made;
  }

  static void begins(Statement one) {
    OVER_JDBC.put(one.statementId(), one);
  }

  static void ended(Statement one) {
    OVER_JDBC.remove(one.statementId());
  }

  /** Those over JDBC that are computed now, as JSON: id, user, sql, started_ms since 1970. */
  public String overJdbc() throws JsonProcessingException {
    List<Map<String, Object>> found = new ArrayList<>();
    for (Statement one : OVER_JDBC.values()) {
      if (one.isComputed()) {
        found.add(Map.of(
            "id", one.statementId(), "user", one.user(), "sql", one.text(), "started_ms", one.startedMs()));
      }
    }
    return JSON.writeValueAsString(found);
  }

  /** Ends one over JDBC; its client gets this error. False where there is none, or it has ended. */
  public boolean end(String id, String what, String why, String remedy) {
    Statement one = OVER_JDBC.get(id);
    return one != null && one.end(new ReportedError(what, why, remedy, Statement.CANCELLED));
  }

  /** Ends those of a user over JDBC, whose clients get this error; how many there were. */
  static long endOf(String user, String what, String why, String remedy) {
    return OVER_JDBC.values().stream().filter(one -> one.user().equals(user))
        .filter(one -> one.end(new ReportedError(what, why, remedy, Statement.CANCELLED))).count();
  }

  /** Bytes by the statement's id over JDBC, or its tag over HTTP, as JSON; of one without a task nothing. */
  public String held() throws JsonProcessingException {
    MemoryManager manager = SparkEnv.get().memoryManager();
    Map<String, Long> found = new TreeMap<>();
    tasks.forEach((task, statement) -> found.merge(statement, manager.getExecutionMemoryUsageForTask(task), Long::sum));
    return JSON.writeValueAsString(found);
  }

  @Override
  public void onStageSubmitted(SparkListenerStageSubmitted event) {
    Properties given = event.properties();
    String group = given == null ? null : given.getProperty(SparkContext$.MODULE$.SPARK_JOB_GROUP_ID());
    String tags = given == null ? null : given.getProperty(SparkContext$.MODULE$.SPARK_JOB_TAGS());
    String statement = group == null || group.isEmpty() ? tags : group;
    if (statement != null && !statement.isEmpty()) {
      stages.put(event.stageInfo().stageId(), statement);
    }
  }

  @Override
  public void onStageCompleted(SparkListenerStageCompleted event) {
    stages.remove(event.stageInfo().stageId());
  }

  @Override
  public void onTaskStart(SparkListenerTaskStart event) {
    String statement = stages.get(event.stageId());
    if (statement != null) {
      tasks.put(event.taskInfo().taskId(), statement);
    }
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd event) {
    tasks.remove(event.taskInfo().taskId());
  }
}
