package twinlake.reading;

import java.util.List;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Lists of Java as Spark takes them. */
final class Seqs {
  private Seqs() {}

  static <T> Seq<T> of(List<T> from) {
    return List$.MODULE$.from(CollectionConverters.asScala(from));
  }
}
