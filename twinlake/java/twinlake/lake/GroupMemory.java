package twinlake.lake;

import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.TaskMemoryManager;

/**
 * What groups take, counted by Spark as what its own sorts take is. Groups cannot be spilled: where Spark has no more,
 * they are handed on. Whoever takes them may not have begun by then, and would fail without its first pages; to that one
 * it leaves its count, until the groups are gone, too.
 */
final class GroupMemory extends MemoryConsumer {
  private static final long FIRST_PAGES = 8 << 20;

  GroupMemory(TaskMemoryManager task) {
    super(task, MemoryMode.ON_HEAP);
  }

  @Override
  public long spill(long size, MemoryConsumer wanting) {
    if (wanting == this || wanting.getUsed() >= FIRST_PAGES) {
      return 0;
    }
    long left = Math.min(size, getUsed());
    freeMemory(left);
    return left;
  }
}
