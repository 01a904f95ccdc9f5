package twinlake.lake;

import java.util.List;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Lists of Java as Spark takes them. */
public final class Seqs {
  private Seqs() {}

  public static <T> Seq<T> of(List<T> from) {
    return List$.MODULE$.from(CollectionConverters.asScala(from));
  }
}
