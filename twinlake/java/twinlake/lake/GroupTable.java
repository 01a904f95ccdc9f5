package twinlake.lake;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Supplier;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.sql.catalyst.expressions.BaseOrdering;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.ByteArrayMethods;

/**
 * Groups by their keys, as bytes in a few large pages: an object for each value of a group costs more than to sort the
 * rows. Open addressing with linear probing (Knuth, The Art of Computer Programming, volume 3, algorithm L).
 *
 * <p>One group is at hand at a time: {@link #find} and {@link #next} say which. {@code T} is what a group has as objects.
 */
final class GroupTable<T> {
  private static final int PAGE_BYTES = 1 << 20;
  private static final int SMALLEST_PAGE_BYTES = 1 << 12;
  /** So much they take unasked: handed on one at a time they are of no use. It fits into caches. */
  private static final long FEW_BYTES = 4 * PAGE_BYTES;
  private static final int FIRST_SLOTS = 1 << 10;
  private static final int BASE = Platform.BYTE_ARRAY_OFFSET;
  private static final long[] NONE = {};

  /** By what a group's struct is chosen, and how many fields it has. */
  record Choice(BaseOrdering order, boolean isGreatest, int fields) {}

  /** Of the group that is at hand. They are overwritten where they are. */
  final UnsafeRow key;
  final UnsafeRow fixed;
  final UnsafeRow[] structs;
  /** In the order of the structs: whether the group has one. */
  final boolean[] hasStruct;
  T beside;

  private final long mostBytes;
  /** A page is a small part of what groups may take, or a table would be full with its first page. */
  private final int pageBytes;
  private final MemoryConsumer memory;
  private final UnsafeRow initial;
  private final Choice[] choices;
  private final Supplier<T> made;
  private final List<byte[]> pages = new ArrayList<>();
  private final List<T> all = new ArrayList<>();
  private byte[] page;
  private int used;
  private long bytes;
  /** How many of them Spark was asked for, and whether it had fewer. */
  private long asked;
  private boolean isShort;
  private boolean isFew;
  /** Page and place of a group, and 1 more; 0 where there is none. Beside it the hash of its key. */
  private long[] slots;
  private int[] hashes;
  private int at;
  /** The page of the group that is at hand, and where in it the places of its structs begin. */
  private byte[] here;
  private int places;

  /** A group begins with these fixed columns, and with what is made for it. By this memory Spark counts what they take. */
  GroupTable(
      long mostBytes, MemoryConsumer memory, int keyFields, UnsafeRow initial, Choice[] choices, Supplier<T> made) {
    this.mostBytes = mostBytes;
    pageBytes = (int) Math.max(SMALLEST_PAGE_BYTES, Math.min(PAGE_BYTES, mostBytes / 16));
    this.memory = memory;
    this.initial = initial;
    this.choices = choices;
    key = new UnsafeRow(keyFields);
    fixed = new UnsafeRow(initial.numFields());
    structs = Arrays.stream(choices).map(one -> new UnsafeRow(one.fields())).toArray(UnsafeRow[]::new);
    hasStruct = new boolean[choices.length];
    this.made = made;
    clear();
  }

  /** Forgets all groups, and keeps no memory. */
  void clear() {
    pages.clear();
    all.clear();
    page = null;
    here = null;
    beside = null;
    key.pointTo(null, 0, 0);
    fixed.pointTo(null, 0, 0);
    for (UnsafeRow struct : structs) {
      struct.pointTo(null, 0, 0);
    }
    used = 0;
    memory.freeMemory(memory.getUsed());
    asked = 0;
    isShort = false;
    bytes = 0;
    slots = NONE;
    hashes = null;
    at = 0;
  }

  /** Forgets all groups; from now on it takes others, few of them where those of one key come after one another. */
  void begin(boolean isFew) {
    clear();
    this.isFew = isFew;
    slots = new long[FIRST_SLOTS];
    hashes = new int[FIRST_SLOTS];
    at = slots.length;
  }

  /** Counts what has been taken, in pages or beside them. Spark is asked for what is beyond the first few bytes. */
  void grown(long more) {
    bytes += more;
    long wanted = bytes - FEW_BYTES - asked;
    if (wanted > 0 && !isShort) {
      asked += wanted;
      isShort = memory.acquireMemory(wanted) < wanted;
    }
  }

  boolean isFull() {
    return bytes >= (isFew || isShort ? Math.min(mostBytes, FEW_BYTES) : mostBytes);
  }

  int size() {
    return all.size();
  }

  /** Puts the group of this key at hand, a new one where there is none. */
  void find(UnsafeRow wanted) {
    int hash = wanted.hashCode();
    int slot = hash & slots.length - 1;
    while (slots[slot] != 0) {
      if (hashes[slot] == hash && isOf(slots[slot] - 1, wanted)) {
        return;
      }
      slot = slot + 1 & slots.length - 1;
    }
    slots[slot] = add(wanted) + 1;
    hashes[slot] = hash;
    if (all.size() > slots.length / 2) {
      grow();
    }
  }

  /** Keeps this struct for the group at hand if it is before the one that the group has. */
  void offer(int choice, UnsafeRow struct) {
    int place = places + 16 * choice;
    long kept = Platform.getLong(here, BASE + place);
    int size = struct.getSizeInBytes();
    if (kept >= 0) {
      byte[] in = pages.get((int) (kept >>> 32));
      int from = (int) kept;
      structs[choice].pointTo(in, BASE + from, Platform.getInt(here, BASE + place + 8));
      int order = choices[choice].order().compare(struct, structs[choice]);
      if (choices[choice].isGreatest() ? order <= 0 : order >= 0) {
        return;
      }
      if (size <= Platform.getInt(here, BASE + place + 12)) {
        Platform.copyMemory(struct.getBaseObject(), struct.getBaseOffset(), in, BASE + from, size);
        Platform.putInt(here, BASE + place + 8, size);
        return;
      }
    }
    long stored = room(size);
    Platform.copyMemory(struct.getBaseObject(), struct.getBaseOffset(), page, BASE + (int) stored, size);
    Platform.putLong(here, BASE + place, stored);
    Platform.putInt(here, BASE + place + 8, size);
    Platform.putInt(here, BASE + place + 12, size);
  }

  /** From now on {@link #next} goes through all groups. */
  void rewind() {
    at = -1;
    forward();
  }

  boolean hasNext() {
    return at < slots.length;
  }

  /** Puts the next group at hand. */
  void next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    point(slots[at] - 1);
    for (int choice = 0; choice < structs.length; choice++) {
      int place = places + 16 * choice;
      long kept = Platform.getLong(here, BASE + place);
      hasStruct[choice] = kept >= 0;
      if (hasStruct[choice]) {
        structs[choice].pointTo(
            pages.get((int) (kept >>> 32)), BASE + (int) kept, Platform.getInt(here, BASE + place + 8));
      }
    }
    forward();
  }

  private void forward() {
    do {
      at++;
    } while (at < slots.length && slots[at] == 0);
  }

  private boolean isOf(long address, UnsafeRow wanted) {
    point(address);
    int size = key.getSizeInBytes();
    return size == wanted.getSizeInBytes() && ByteArrayMethods.arrayEquals(
        key.getBaseObject(), key.getBaseOffset(), wanted.getBaseObject(), wanted.getBaseOffset(), size);
  }

  /** A group is the size of its key and its number, its key, its fixed columns, and for each struct its address, size
   * and room. */
  private void point(long address) {
    here = pages.get((int) (address >>> 32));
    int from = (int) address;
    int size = Platform.getInt(here, BASE + from);
    beside = all.get(Platform.getInt(here, BASE + from + 4));
    key.pointTo(here, BASE + from + 8, size);
    fixed.pointTo(here, BASE + from + 8 + size, initial.getSizeInBytes());
    places = from + 8 + size + initial.getSizeInBytes();
  }

  private long add(UnsafeRow wanted) {
    int size = wanted.getSizeInBytes();
    long address = room(Math.addExact(size, 8 + initial.getSizeInBytes() + 16 * choices.length));
    int from = (int) address;
    Platform.putInt(page, BASE + from, size);
    Platform.putInt(page, BASE + from + 4, all.size());
    all.add(made.get());
    Platform.copyMemory(wanted.getBaseObject(), wanted.getBaseOffset(), page, BASE + from + 8, size);
    Platform.copyMemory(
        initial.getBaseObject(), initial.getBaseOffset(), page, BASE + from + 8 + size, initial.getSizeInBytes());
    point(address);
    for (int choice = 0; choice < choices.length; choice++) {
      Platform.putLong(here, BASE + places + 16 * choice, -1);
    }
    return address;
  }

  /** Page and place of so many bytes, which are those of rows, so in eights. */
  private long room(int size) {
    if (page == null || size > page.length - used) {
      page = new byte[Math.max(pageBytes, size)];
      pages.add(page);
      used = 0;
      grown(page.length);
    }
    long address = (long) (pages.size() - 1) << 32 | used;
    used += size;
    return address;
  }

  private void grow() {
    long[] before = slots;
    int[] known = hashes;
    slots = new long[before.length * 2];
    hashes = new int[slots.length];
    grown(12L * before.length);
    for (int one = 0; one < before.length; one++) {
      if (before[one] != 0) {
        int slot = known[one] & slots.length - 1;
        while (slots[slot] != 0) {
          slot = slot + 1 & slots.length - 1;
        }
        slots[slot] = before[one];
        hashes[slot] = known[one];
      }
    }
  }
}
