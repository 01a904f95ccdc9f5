package twinlake.reading;

import io.delta.package$;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * What the guards know of Spark by name, looked up at start: one that Spark has renamed guards nothing, or refuses all.
 */
public final class Guards {
  /** `tests/reading` has passed with these. */
  static final List<String> SPARKS = List.of("4.1.1");
  static final List<String> DELTAS = List.of("4.3.1");

  private static final List<String> PACKAGES = List.of(
      "catalyst.plans.logical", "catalyst.analysis", "catalyst.expressions", "catalyst.streaming", "execution.command",
      "execution.datasources", "execution.datasources.v2", "execution.streaming.runtime");

  private Guards() {}

  static void checkVersions() {
    checkVersions(org.apache.spark.package$.MODULE$.SPARK_VERSION(), package$.MODULE$.VERSION());
  }

  public static void checkVersions(String spark, String delta) {
    if (!SPARKS.contains(spark) || !DELTAS.contains(delta)) {
      throw new NotTested("this is Spark " + spark + " with Delta " + delta);
    }
  }

  /** The classes of plans that have these names, in Spark's own packages; each name has one. */
  public static Set<Class<?>> classes(String... names) {
    Set<Class<?>> found = new HashSet<>();
    for (String name : names) {
      boolean isThere = false;
      for (String folder : PACKAGES) {
        for (String full : List.of(name, name + "$")) {
          Class<?> one = find("org.apache.spark.sql." + folder + "." + full);
          if (one != null && LogicalPlan.class.isAssignableFrom(one)) {
            isThere = true;
            found.add(one);
          }
        }
      }
      if (!isThere) {
        throw new NotTested("it has no class " + name);
      }
    }
    return found;
  }

  /** The name that a frame of the stack has while this method runs. */
  public static String method(Class<?> of, String name) {
    if (Arrays.stream(of.getDeclaredMethods()).map(Method::getName).noneMatch(name::equals)) {
      throw new NotTested(of.getName() + " has no method " + name);
    }
    return name;
  }

  private static Class<?> find(String name) {
    try {
      return Class.forName(name, false, Guards.class.getClassLoader());
    } catch (ClassNotFoundException none) {
      return null;
    }
  }
}
