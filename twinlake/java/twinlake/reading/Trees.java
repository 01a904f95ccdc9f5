package twinlake.reading;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import scala.Product;
import scala.collection.Iterator;

/** What a statement is made of, however deep: no call inside a call, which would end in an overflow of the stack. */
final class Trees {
  private record Open(Iterator<?> parts, int depth) {}

  private Trees() {}

  /** Everything that a node holds, not its children alone: an INSERT holds its target beside them. */
  static void walk(TreeNode<?> root, int deepest, Consumer<TreeNode<?>> each) {
    each.accept(root);
    Deque<Open> open = new ArrayDeque<>();
    open.push(new Open(root.productIterator(), 1));
    while (!open.isEmpty()) {
      Open now = open.peek();
      if (!now.parts.hasNext()) {
        open.pop();
        continue;
      }
      Object part = now.parts.next();
      if (part instanceof TreeNode<?> node) {
        if (now.depth >= deepest) {
          throw BoundedParser.tooDeep();
        }
        each.accept(node);
        open.push(new Open(node.productIterator(), now.depth + 1));
      } else if (part instanceof DataType) {
        continue; // a row's is a list of its columns, which each of them may hold: a million times a million
      } else if (part instanceof scala.collection.Iterable<?> several) {
        open.push(new Open(several.iterator(), now.depth));
      } else if (part instanceof Product product && part.getClass().getName().startsWith("scala.")) {
        open.push(new Open(product.productIterator(), now.depth));
      }
    }
  }
}
