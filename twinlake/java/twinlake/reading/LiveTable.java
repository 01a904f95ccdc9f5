package twinlake.reading;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.FunctionConverters;

/**
 * The data files of one Delta table that are live now. Delta's own snapshot of a new version costs a reader Spark jobs,
 * and a table that is fed has several new versions a second: here a version costs the reading of its commit's file.
 *
 * <p>The follower opens tables and tells what their checkpoints hold; a statement reads forward what was committed since.
 */
public final class LiveTable {
  /** The table function, of a path, that the texts of views read by. */
  public static final String FUNCTION = "twinlake_live";

  private static final ObjectMapper JSON = new ObjectMapper();

  /** Who has made a commit that says how many data files it names. */
  private static final String ENGINE = "Twinlake";
  private static final String WHOLE = "a whole commit, one action a line";

  private static final long LONGEST_WAIT_MS = 2_000;
  private static final Map<String, LiveTable> OPEN = new ConcurrentHashMap<>();

  /** What stands for a table that cannot be read, by its name. */
  private static final Map<String, DamagedFile> DAMAGED = new ConcurrentHashMap<>();

  private record DamagedFile(String file, String found, String expected) {}

  /** The versions of the statement that this thread analyses, by path. */
  private static final ThreadLocal<Map<String, LiveFiles>> PINNED = new ThreadLocal<>();

  private static final ThreadLocal<Map<String, Long>> LAST = new ThreadLocal<>();

  /** By path, the tables of the plan that this thread prepares. */
  private static final ThreadLocal<Prepared> PREPARED = new ThreadLocal<>();

  private record Prepared(Map<String, PreparedFiles> files, long mostRows) {}

  private final Commits commits;
  private final Map<String, DataFile> files = new LinkedHashMap<>();
  private long version;
  private StructType columns;

  /** Of its newest step, or batch of a log. */
  private Map<String, Long> position = Map.of();

  /** It cannot be read forward; the follower reads it from its start. */
  private boolean behind = true;

  private LiveFiles newest;

  private LiveTable(String path) {
    this.commits = new Commits(path);
  }

  /** This session, and those that are made from now on, know the function; a view may not name one of an extension. */
  public static void register(SparkSession session) {
    var state = ((org.apache.spark.sql.classic.SparkSession) session).sessionState();
    for (TableFunctionRegistry registry : List.of(TableFunctionRegistry.builtin(), state.tableFunctionRegistry())) {
      registry.registerFunction(
          new FunctionIdentifier(FUNCTION), new ExpressionInfo(LiveTable.class.getName(), FUNCTION),
          FunctionConverters.asScalaFromFunction(
              path -> relation(CollectionConverters.asJava(path).get(0).eval(null).toString())));
    }
  }

  /**
   * The table holds these files at this version; for a table that is not open, or is behind.
   *
   * @param actions the actions metaData and add, one a line, as in a commit; commitInfo with the newest position
   */
  public static void begin(String path, long version, String actions) throws IOException {
    OPEN.computeIfAbsent(path, LiveTable::new).beginAt(version, actions);
  }

  /** Reads the table forward; false where it is not open or cannot be read forward, and has to be read from its start. */
  public static boolean follow(String path) throws IOException {
    LiveTable table = OPEN.get(path);
    return table != null && table.forward();
  }

  /** The table as these actions of a version tell it, whatever comes after; it need not be open. */
  static LiveFiles fixed(String path, String actions) throws IOException {
    LiveTable table = new LiveTable(path);
    table.take(parsed(actions));
    return new LiveFiles(path, table.columns, List.copyOf(table.files.values()), table.position);
  }

  public static void close(String path) {
    OPEN.remove(path);
  }

  /** What is computed here sees each table at one version, however often it is named. */
  static <T> T atOneVersion(Supplier<T> analysis) {
    Map<String, LiveFiles> pinned = new HashMap<>();
    PINNED.set(pinned);
    try {
      T found = analysis.get();
      LAST.set(position(pinned.values()));
      return found;
    } finally {
      PINNED.remove();
    }
  }

  /** By topic, as JSON, the batch up to which all tables are computed that this thread's last statement reads. */
  public static String ofLastStatement() throws JsonProcessingException {
    return JSON.writeValueAsString(LAST.get() == null ? Map.of() : LAST.get());
  }

  /** By topic, the batch up to which all of them are computed. */
  static Map<String, Long> position(Iterable<LiveFiles> tables) {
    Map<String, Long> found = new TreeMap<>();
    tables.forEach(one -> one.position().forEach((topic, batch) -> found.merge(topic, batch, Math::min)));
    return found;
  }

  /** An open table with its files of now, or those that this thread's statement has seen before. */
  public static LogicalPlan relation(String path) {
    DamagedFile damaged = DAMAGED.get(path);
    if (damaged != null) {
      return damaged(damaged);
    }
    Prepared prepared = PREPARED.get();
    if (prepared != null) {
      return prepared.files.computeIfAbsent(path, one -> new PreparedFiles(one, at(one).columns(), prepared.mostRows))
          .relation(SparkSession.active());
    }
    return at(path).relation(SparkSession.active());
  }

  /** The tables that a statement reads, which is analysed here for a prepared plan, by path; it scans at most so many rows. */
  static Map<String, PreparedFiles> prepared(long mostRows, Runnable analysis) {
    Prepared found = new Prepared(new LinkedHashMap<>(), mostRows);
    PREPARED.set(found);
    try {
      analysis.run();
      return found.files;
    } finally {
      PREPARED.remove();
    }
  }

  /** The open table with its files of now, or those that this thread's statement has seen before. */
  static LiveFiles at(String path) {
    Map<String, LiveFiles> pinned = PINNED.get();
    if (pinned != null && pinned.containsKey(path)) {
      return pinned.get(path);
    }
    LiveTable table = OPEN.get(path);
    if (table == null) {
      throw new Refused("a relation that is not a view", Names.WHY);
    }
    LiveFiles found = table.now();
    if (pinned != null) {
      pinned.put(path, found);
    }
    return found;
  }

  private synchronized void beginAt(long given, String actions) throws IOException {
    behind = true; // until all of it is taken
    files.clear();
    take(parsed(actions));
    version = given;
    behind = false;
    notifyAll();
  }

  /** Who reads by this name gets an error; the follower alone may name it in the text of a view. */
  public static void damage(String name, String file, String found, String expected) {
    DAMAGED.put(name, new DamagedFile(file, found, expected));
  }

  private static LogicalPlan damaged(DamagedFile named) {
    if (!ReadOnly.isOwnerSession(SparkSession.active())) {
      throw new Damaged(named.file, named.found, named.expected, null);
    }
    var columns = new StructType().add("damaged", "string");
    return new LiveFiles("/", columns, List.of(), Map.of()).relation(SparkSession.active());
  }

  private synchronized LiveFiles now() {
    try {
      long until = System.currentTimeMillis() + LONGEST_WAIT_MS;
      while (!forward()) {
        long left = until - System.currentTimeMillis();
        if (left <= 0 || ReadOnly.isOwnerSession(SparkSession.active())) { // the owner session itself reads it again
          throw new OneRelease.Busy("the table " + commits + " is being read again");
        }
        wait(left);
      }
      if (newest == null) {
        newest = new LiveFiles(commits.toString(), columns, List.copyOf(files.values()), position);
      }
      return newest;
    } catch (IOException error) {
      throw new IllegalStateException("the table " + commits + " could not be read: " + error.getMessage(), error);
    } catch (InterruptedException ended) {
      throw OneRelease.cancelled(ended);
    }
  }

  private synchronized boolean forward() throws IOException {
    while (!behind) {
      String actions = commits.actions(version + 1);
      if (actions == null) {
        behind = !commits.has(version); // commits are cleaned up in their order
        break;
      }
      List<JsonNode> whole = whole(actions);
      behind = true;
      version++;
      behind = !take(whole);
    }
    return !behind;
  }

  /** The actions of the next commit; a torn one changes nothing here, so that it goes on once it was put back. */
  private List<JsonNode> whole(String actions) {
    String file = commits.place(version + 1);
    List<JsonNode> found;
    try {
      found = parsed(actions);
    } catch (JsonProcessingException torn) {
      throw new Damaged(file, actions.length() + " characters, which are no whole commit", WHOLE, torn);
    }
    if (found.isEmpty() || !found.stream().allMatch(JsonNode::isObject)) {
      throw new Damaged(file, actions.length() + " characters, which are no whole commit", WHOLE, null);
    }
    JsonNode commitInfo = found.get(0).path("commitInfo");
    long named = found.stream().filter(action -> action.path("add").isObject()).count();
    if (commitInfo.path("engineInfo").asText().equals(ENGINE)
        && commitInfo.path("operationMetrics").path("numFiles").asLong() != named) {
      throw new Damaged(file, "it names " + named + " data files, and says that it has others", WHOLE, null);
    }
    return found;
  }

  private static List<JsonNode> parsed(String actions) throws JsonProcessingException {
    List<JsonNode> found = new ArrayList<>();
    for (String line : actions.split("\n")) {
      if (!line.isBlank()) {
        found.add(JSON.readTree(line));
      }
    }
    return found;
  }

  /** Whether it can be read forward from here. */
  private boolean take(List<JsonNode> actions) {
    newest = null;
    boolean known = true;
    for (JsonNode action : actions) {
      JsonNode added = action.path("add");
      JsonNode removed = action.path("remove");
      JsonNode metadata = action.path("metaData");
      position = positionOf(action.path("commitInfo").path("userMetadata"), position);
      if (added.isObject()) {
        files.put(added.get("path").textValue(), file(added));
      } else if (removed.isObject()) {
        files.remove(removed.get("path").textValue());
      } else if (metadata.isObject()) {
        columns = columns(metadata);
      } else if (action.path("protocol").isObject()) {
        known = false; // who reads it from its start refuses what cannot be read so
      }
    }
    return known;
  }

  /** What a commit says of it: a step of a version, or a batch of a log; else that of before. */
  private Map<String, Long> positionOf(JsonNode userMetadata, Map<String, Long> before) {
    try {
      JsonNode said = userMetadata.isTextual() ? JSON.readTree(userMetadata.textValue()) : userMetadata;
      if (said.has("watermark") && said.path("position").isObject()) {
        Map<String, Long> found = new HashMap<>();
        said.get("position").fields().forEachRemaining(one -> found.put(one.getKey(), one.getValue().longValue()));
        return Map.copyOf(found);
      }
      if (commits.topic() != null && said.path("batch").isIntegralNumber()) {
        return Map.of(commits.topic(), said.get("batch").longValue());
      }
    } catch (JsonProcessingException foreign) {
      return before; // of a commit that somebody else has made
    }
    return before;
  }

  private DataFile file(JsonNode added) {
    long size = added.get("size").longValue();
    var file = commits.file(URI.create(added.get("path").textValue()));
    var status = new FileStatus(size, false, 1, size, 0, file);
    return new DataFile(status, added.path("stats").textValue());
  }

  /** Those that are in the files: no view reads what a table is partitioned by. */
  private static StructType columns(JsonNode metadata) {
    StructType found = new StructType();
    List<String> partitions = JSON.convertValue(metadata.get("partitionColumns"), JSON.getTypeFactory()
        .constructCollectionType(List.class, String.class));
    var all = (StructType) DataType.fromJson(metadata.get("schemaString").textValue());
    for (StructField column : CollectionConverters.asJava(all)) {
      if (!partitions.contains(column.name())) {
        found = found.add(column);
      }
    }
    return found.asNullable();
  }
}
