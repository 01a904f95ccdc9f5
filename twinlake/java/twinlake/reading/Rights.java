package twinlake.reading;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * What one person may read: tables, columns, what they see masked, and which rows. `twinlake/config/rights.py` has the
 * form, `twinlake/reading/rights.py` tells whose they are; {@link Protected} holds statements to them.
 *
 * <p>A session is somebody's from its beginning. One that nobody has said to be anybody's reads nothing.
 */
public final class Rights {
  /** From the weakest to the strongest: where several are meant, the last of them holds. */
  enum Mask { NONE, HASH, LAST4, NULL }

  /** Of one user, as they are now; every table where there is none. */
  static final Rights ALL = new Rights(null, Set.of(), Map.of(), Map.of());

  private static final Rights NOTHING = new Rights(List.of(), Set.of(), Map.of(), Map.of());
  /** What schemas of points in time begin with. */
  static final String PAST = "as_of_";
  private static final String ANY = "*";
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Who reads in a session; nobody in particular reads as the server itself. */
  private static final Map<SparkSession, String> USERS = Collections.synchronizedMap(new WeakHashMap<>());
  private static final String SERVER = "";
  private static final long KNOWN_NS = 5_000_000_000L, PAUSE_MS = 20;

  private static volatile Map<String, Rights> rights = Map.of();

  /** By view and column, in lower case, the classifications of the contract. */
  private static volatile Map<String, Map<String, Set<String>>> classes = Map.of();

  private final List<Pattern> tables;
  private final Set<String> hidden;
  private final Map<String, Mask> masks;
  private final Map<String, String> rows;

  private Rights(List<Pattern> tables, Set<String> hidden, Map<String, Mask> masks, Map<String, String> rows) {
    this.tables = tables;
    this.hidden = hidden;
    this.masks = masks;
    this.rows = rows;
  }

  /** `users` maps each user to what they may read, null for everything; who is not among them reads nothing. */
  public static void tell(String users) throws JsonProcessingException {
    Map<String, Rights> found = new HashMap<>();
    JSON.readTree(users).fields().forEachRemaining(one -> found.put(one.getKey(), of(one.getValue())));
    rights = found;
  }

  /** `views` maps each view to its columns, and those to their classifications. */
  public static void classify(String views) throws JsonProcessingException {
    Map<String, Map<String, Set<String>>> found = new HashMap<>();
    JSON.readTree(views).fields().forEachRemaining(view -> {
      Map<String, Set<String>> columns = new HashMap<>();
      view.getValue().fields().forEachRemaining(one -> columns.put(low(one.getKey()), Set.copyOf(texts(one.getValue()))));
      found.put(low(view.getKey()), columns);
    });
    classes = found;
  }

  /** In hexadecimal, of masks that hash; empty before there are any. */
  public static void key(String hex) {
    Masks.key(hex);
  }

  /** Whether this user may read anything of the view in `serve`. */
  public static boolean reads(String user, String view) {
    return of(user).mayRead(DefaultSchema.SERVE, view);
  }

  /** Whether this user sees everything there is. */
  public static boolean seesEverything(String user) {
    return of(user).areAll();
  }

  /**
   * Whether this user sees every row and column of the view in `serve`, as they are, and as they were: what is held
   * back by a column's name may be one of an earlier release.
   */
  public static boolean seesAll(SparkSession owner, String user, String view) {
    Rights found = of(user);
    if (found.areAll()) {
      return true;
    }
    var catalog = ((org.apache.spark.sql.classic.SparkSession) owner).sessionState().catalog();
    StructType columns = Protected.of(catalog, new TableIdentifier(view, Option.apply(DefaultSchema.SERVE)));
    return columns != null && found.mayRead(DefaultSchema.SERVE, view) && !found.changes(view, columns)
        && !found.namesColumnOf(view);
  }

  /** Whether what this user is shown of the column, in `serve`, tells its values apart. */
  public static boolean tellsApart(String user, String view, String column) {
    Rights found = of(user);
    Mask mask = found.mask(view, column);
    return !found.isHidden(view, column) && (mask == Mask.NONE || mask == Mask.HASH);
  }

  /** Whoever was let in a moment ago is known a moment later: the file is looked at every second. */
  static void await(String user) {
    for (long until = System.nanoTime() + KNOWN_NS; !rights.containsKey(user) && System.nanoTime() < until; ) {
      try {
        Thread.sleep(PAUSE_MS);
      } catch (InterruptedException ended) {
        Thread.currentThread().interrupt();
        return;
      }
    }
  }

  /** From now on the session is this user's; the server's own where it is empty. */
  static void begin(SparkSession session, String user) {
    USERS.put(session, user);
  }

  static Rights of(SparkSession session) {
    String user = user(session);
    return user == null ? NOTHING : of(user);
  }

  static Rights of(String user) {
    return user.equals(SERVER) ? ALL : rights.getOrDefault(user, NOTHING);
  }

  /** Null where nobody has said so; over JDBC a session begins with a statement of its own. */
  static String user(SparkSession session) {
    String user = USERS.get(session);
    return user == null ? Sessions.shown() : user;
  }

  boolean areAll() {
    return tables == null && hidden.isEmpty() && masks.isEmpty() && rows.isEmpty();
  }

  boolean mayRead(String schema, String view) {
    String name = named(schema) + "." + low(view);
    return tables == null || tables.stream().anyMatch(pattern -> pattern.matcher(name).matches());
  }

  /** Whether anything of the view is otherwise for this person than it is. */
  boolean changes(String view, StructType columns) {
    return condition(view) != null || List.of(columns.fields()).stream().anyMatch(
        one -> isHidden(view, one.name()) || mask(view, one.name()) != Mask.NONE);
  }

  private boolean namesColumnOf(String view) {
    return Stream.concat(hidden.stream(), masks.keySet().stream()).anyMatch(one -> one.startsWith(low(view) + "."));
  }

  /** SQL of the rows that are there; null where all are. */
  String condition(String view) {
    return rows.get(low(view));
  }

  boolean isHidden(String view, String column) {
    return hidden.contains(low(view) + "." + low(column));
  }

  /** A column of which nobody has said what it is has no value for who sees anything masked by classification. */
  Mask mask(String view, String column) {
    Mask found = masks.getOrDefault(low(view) + "." + low(column), Mask.NONE);
    if (masks.keySet().stream().allMatch(one -> one.contains("."))) {
      return found;
    }
    Set<String> of = classes.getOrDefault(low(view), Map.of()).get(low(column));
    if (of == null) {
      return Mask.NULL;
    }
    for (String one : of) {
      found = stronger(found, masks.getOrDefault(one, masks.getOrDefault(ANY, Mask.NONE)));
    }
    return found;
  }

  /** The columns that this person is shown, with the types that they have for them. */
  StructType shown(String view, StructType columns) {
    List<StructField> found = new ArrayList<>();
    for (StructField one : columns.fields()) {
      if (!isHidden(view, one.name())) {
        Mask mask = mask(view, one.name());
        boolean isText = mask == Mask.HASH || mask == Mask.LAST4;
        found.add(!isText ? one : new StructField(one.name(), DataTypes.StringType, true, one.metadata()));
      }
    }
    return new StructType(found.toArray(StructField[]::new));
  }

  /** A table as it was is named as the one that is. */
  private static String named(String schema) {
    return schema.startsWith(PAST) ? DefaultSchema.SERVE : low(schema);
  }

  private static Rights of(JsonNode said) {
    if (said.isNull()) {
      return ALL;
    }
    List<Pattern> tables = new ArrayList<>();
    for (String one : texts(said.path("tables"))) {
      String name = one.contains(".") ? one : ANY + "." + one;
      tables.add(Pattern.compile(low(name).replace(".", "\\.").replace(ANY, ".*")));
    }
    Set<String> hidden = new HashSet<>();
    texts(said.path("hidden")).forEach(one -> hidden.add(low(one)));
    Map<String, Mask> masks = new HashMap<>();
    said.path("masks").fields().forEachRemaining(one ->
        masks.put(one.getKey().contains(".") ? low(one.getKey()) : one.getKey(),
            Mask.valueOf(one.getValue().textValue().toUpperCase(Locale.ROOT))));
    Map<String, String> rows = new HashMap<>();
    said.path("rows").fields().forEachRemaining(one -> rows.put(low(one.getKey()), one.getValue().textValue()));
    return new Rights(said.has("tables") ? tables : null, hidden, masks, rows);
  }

  private static Mask stronger(Mask one, Mask other) {
    return one.compareTo(other) < 0 ? other : one;
  }

  private static List<String> texts(JsonNode list) {
    List<String> found = new ArrayList<>();
    list.forEach(one -> found.add(one.textValue()));
    return found;
  }

  private static String low(String name) {
    return name.toLowerCase(Locale.ROOT);
  }
}
