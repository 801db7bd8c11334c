# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Commands of gdb that look into the heap of a process or of a core file.

    heap block ADDRESS    what the allocator knows of an address
    heap fault            the same for the address at which the program faulted
    heap stats            where the memory is

They read the allocator's data and call no function of the program, so that they work on core files
as well. They need the debugging information of the library. Load this file by `source tcm-gdb.py`;
gdb loads it by itself where it is installed in gdb's auto-load folder.
"""

import struct

import gdb
import gdb.printing

WORD = 1 << 64
SIGN = 1 << 63


class Problem(Exception):
    """Something that the user should be told in one line."""


# ---- Values and memory ---------------------------------------------------------------------------


def own_fields(type_):
    """The fields of a class that are in its objects, base classes included."""
    return [field for field in type_.fields() if hasattr(field, "bitpos")]


def scalar(value):
    """The number or pointer inside of a wrapper such as std::atomic, Relaxed or Length."""
    while value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        fields = own_fields(value.type.strip_typedefs())
        if not fields:
            raise Problem(f"cannot read a value of type {value.type}")
        value = value[fields[0]]
    return value


def number(value):
    return int(scalar(value))


def enumerator(value):
    """The last part of the name of an enumeration's value."""
    return str(scalar(value)).rsplit("::", 1)[-1]


def elements(array):
    """The plain array in a std::array."""
    fields = own_fields(array.type.strip_typedefs())
    return array[fields[0]]


def length_of(array):
    low, high = array.type.strip_typedefs().range()
    return high - low + 1


def read(address, size):
    try:
        return gdb.selected_inferior().read_memory(address, size).tobytes()
    except gdb.MemoryError:
        raise Problem(f"cannot read the memory at {address:#x}; a core file may lack it") from None


def words_at(address, count):
    return struct.unpack(f"<{count}Q", read(address, 8 * count)) if count else ()


def word_at(address):
    return words_at(address, 1)[0]


def variable(name):
    """A variable of the library, or None."""
    for found in (gdb.lookup_global_symbol(name), gdb.lookup_static_symbol(name)):
        if found is not None:
            try:
                return found.value()
            except gdb.error:
                pass
    try:
        return gdb.parse_and_eval(f"'{name}'")
    except gdb.error:
        return None


def pointer_to(address, type_name):
    return gdb.Value(address).cast(gdb.lookup_type(type_name).pointer())


def has_symbol(name):
    try:
        gdb.parse_and_eval(f"(long)&'{name}'")
        return True
    except gdb.error:
        return False


def is_ours(objfile):
    name = (objfile.filename or "").rsplit("/", 1)[-1]
    return name.startswith("libtcmalloc")


def find_heap():
    """The one Heap of the program."""
    heap = variable("tcmalloc::heap")
    is_typed = heap is not None and heap.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT
    if not is_typed:
        libraries = [objfile.filename for objfile in gdb.objfiles() if is_ours(objfile)]
        if libraries or heap is not None or has_symbol("tcmalloc_per_cpu_caches_active"):
            name = libraries[0] if libraries else "this program"
            raise Problem(
                f"{name} has no debugging information of the allocator, which the heap commands "
                "read; use a library that was built with -g and not stripped, or install its "
                "debugging information")
        raise Problem("no TCMalloc in this program; if it is preloaded, start the program first")
    if not number(heap["initialized_"]):
        raise Problem("the heap is not in use yet: nothing was allocated")
    return heap


# ---- Size classes --------------------------------------------------------------------------------


class SizeClasses:
    def __init__(self):
        table = variable("tcmalloc::kSizeClasses")
        if table is None or table.type.strip_typedefs().code != gdb.TYPE_CODE_STRUCT:
            raise Problem("the library has no debugging information of its size classes")
        infos = elements(table)
        self.count = length_of(infos)
        self.size = [int(infos[c]["size"]) for c in range(self.count)]
        # A span of the first class, of 8 bytes, is full of objects.
        first = infos[1]
        self.page_bytes = int(first["objects"]) * self.size[1] // int(first["pages"])
        self.page_shift = self.page_bytes.bit_length() - 1


# ---- Links of free objects -----------------------------------------------------------------------


class Links:
    """What src/pages/free_link.h says."""

    def __init__(self, heap):
        codec = heap["codec_"]
        self.inverse = int(codec["inverse"])
        self.end = int(codec["end"])
        self.limit = int(codec["limit_"])

    def decode(self, link):
        return link * self.inverse % WORD

    @staticmethod
    def reference_to(address):
        moved = (address + 4) % WORD
        return (moved >> 3 | moved << 61) % WORD

    @staticmethod
    def object_at(reference):
        return (reference << 3) % WORD

    def is_link(self, link):
        reference = self.decode(link)
        signed = reference - WORD if reference & SIGN else reference
        return signed < self.limit and self.object_at(reference) != 0

    def follow(self, reference, most):
        """The objects of a list, at most so many. Ends at a link that was overwritten."""
        for _ in range(most):
            if reference == self.end or self.reference_to(self.object_at(reference)) != reference:
                return
            address = self.object_at(reference)
            try:
                link = word_at(address)
            except Problem:
                return
            yield address
            reference = self.decode(link)


FREE_BITS_OF_WORD = 64

# The count, and above it the number of a CPU, which is no part of the reference.
COUNT_SHIFT = 45
COUNT_MASK = 0xFFF
COUNT_AND_CPU_MASK = 0x3FFFF


def unpack_chain(word):
    """(reference, count, is_array) of a PackedChain."""
    return word & ~(COUNT_AND_CPU_MASK << COUNT_SHIFT), word >> COUNT_SHIFT & COUNT_MASK, not word & SIGN


# ---- The heap ------------------------------------------------------------------------------------


def listed(list_, element_type):
    """The elements of an IntrusiveList."""
    head = list_["head_"].address
    node = list_["head_"]["next_node"]
    while int(node) != 0 and int(node) != int(head):
        yield node.cast(element_type.pointer()).dereference()
        node = node["next_node"]


class Span:
    """A copy of what is needed of a span."""

    def __init__(self, value):
        self.first = number(value["first"])
        self.pages = number(value["length"])
        self.state = enumerator(value["state"])
        self.size_class = number(value["size_class"])
        self.allocated = number(value["allocated"])
        self.carved = number(value["carved"])
        self.capacity = int(value["capacity"])
        self.details = int(value["details"])
        self.first_sample = number(value["first_sample"])

    @property
    def in_use(self):
        return self.state in ("kLarge", "kSmall", "kSampled")

    def contains(self, page):
        return self.first <= page < self.first + self.pages


class Heap:
    # How far the beginning of a large span is looked for.
    MOST_LEAVES = 64
    SPAN_SHIFT = 16  # of the address of a span in an entry: PageMap::Entry

    def __init__(self):
        self.value = find_heap()
        self.classes = SizeClasses()
        self.links = Links(self.value)

    # Lists of a class that threads share; None if it never had an object.
    def lists(self, size_class):
        pointer = scalar(self.value["lists_"]["lists_"][size_class])
        return pointer.dereference() if int(pointer) != 0 else None

    def caches(self):
        registry = self.value["caches_"]["registry_"]
        cache = gdb.lookup_type("tcmalloc::ThreadCache<tcmalloc::SizeClassLists>")
        return list(listed(registry["living_"], cache))

    def slabs(self):
        """The number, the memory and the depot of each slab of a CPU that may hold objects."""
        cpus = self.value["cpus_"]
        if not number(cpus["initialized_"]):
            return []
        slabs = cpus["slabs_"]
        found = []
        for i in range(int(slabs["count_"])):
            slab = slabs["slabs_"][i]
            if enumerator(slab["state_"]) != "kUnused":
                found.append((i, int(slab["memory_"]), slab["depot_"].dereference()))
        return found

    # The tree of the page map.
    def leaf(self, page):
        """(address of the leaf's pointers, index in it, number of them), or None."""
        root = scalar(self.value["page_map_"]["root_"])
        if int(root) == 0:
            return None
        middles = root["middles"]
        middle_count = length_of_field("tcmalloc::PageMap::Middle", "leaves")
        leaf_count = length_of_field("tcmalloc::PageMap::Leaf", "words")
        place = page // leaf_count
        if place < length_of(root["near"]):
            leaf = scalar(root["near"][place])
        elif place // middle_count >= length_of(middles):
            return None
        else:
            middle = scalar(middles[place // middle_count])
            if int(middle) == 0:
                return None
            leaf = scalar(middle["leaves"][place % middle_count])
        if int(leaf) == 0:
            return None
        return int(leaf), page % leaf_count, leaf_count

    def span_around(self, address):
        """The span that holds an address, or None. Only ends of large and of free spans are in the map."""
        page = address >> self.classes.page_shift
        at, last = page, 0
        for _ in range(self.MOST_LEAVES):
            place = self.leaf(at)
            if place is None:
                return None
            leaf, index, _ = place
            for word in reversed(words_at(leaf, index + 1)):
                pointer = word >> self.SPAN_SHIFT
                if pointer not in (0, last):
                    span = Span(pointer_to(pointer, "tcmalloc::Span").dereference())
                    if span.state != "kUnused" and span.contains(page):
                        return span
                    # A span before the page: the one with the page would begin behind it.
                    if span.state != "kUnused" and span.contains(at):
                        return None
                last = pointer
                at -= 1
            if at < 0:
                return None
        return None

    def was_in_span(self, address):
        place = self.leaf(address >> self.classes.page_shift)
        return place is not None and word_at(place[0] + 8 * place[1]) != 0

    # Where a free object of a class is.
    def holder(self, address, span):
        """Names what holds a free object, or returns None."""
        size_class = span.size_class
        if self.is_free_in_span(address, span):
            return "free, in its span"
        return (self.slab_with(address, size_class) or self.transfer_with(address, size_class) or
                self.cache_with(address, size_class))

    def is_free_in_span(self, address, span):
        """Reads the bit of an object: see FreeBits. A span of few objects has all bits in its record."""
        if span.allocated == 0:
            return True  # It drained, and has no bits any more.
        start = span.first << self.classes.page_shift
        index = (address - start) // self.classes.size[span.size_class]
        count = -(-span.capacity // FREE_BITS_OF_WORD)
        words = [span.details] if count == 1 else words_at(span.details, count)
        return words[index // FREE_BITS_OF_WORD] >> index % FREE_BITS_OF_WORD & 1 == 1

    def slab_with(self, address, size_class):
        begins = variable("tcmalloc::kSlabBegin")
        if begins is None:
            return None
        begin = int(elements(begins)[size_class])
        for number_, memory, depot in self.slabs():
            top = word_at(memory + 8 * size_class) & 0xFFFF
            if top > begin and any(word >> 16 == address for word in words_at(memory + 8 * begin, top - begin)):
                return f"free, in the cache of CPU {number_}"
            batches = self.stack_words(depot["stocks_"][size_class]["batches"])
            if any(self.chain_with(word, address) for word in batches):
                return f"free, in a batch beside the cache of CPU {number_}"
        return None

    def chain_with(self, word, address):
        reference, count, is_array = unpack_chain(word)
        if is_array:
            # The bit that tells a chain is that of an aligned reference.
            return address in words_at(self.links.object_at(reference), count)
        return address in self.links.follow(reference, count)

    def stack_words(self, stack):
        slots = int(stack["slots_"])
        return words_at(slots, number(stack["size_"])) if slots else ()

    def transfer_with(self, address, size_class):
        lists = self.lists(size_class)
        if lists is None:
            return None
        words = self.stack_words(lists["transfer"]["stack_"])
        found = any(self.chain_with(word, address) for word in words)
        return "free, in the transfer cache of its class" if found else None

    def cache_with(self, address, size_class):
        for cache in self.caches():
            state = cache["states_"][size_class]
            count = max(int(state["capacity"]) - int(cache["room"][size_class]), 0)
            header = f"in the cache of the thread with the header {hex(int(cache['header'].address))}"
            if address in self.links.follow(int(cache["heads"][size_class]), count + 1):
                return f"free, {header}"
            beside = state["beside"]
            if address in self.links.follow(int(beside["head"]), int(beside["count"])):
                return f"free, {header}, in the batch beside its list"
            if any(self.chain_with(word, address) for word in self.stack_words(state["full"])):
                return f"free, {header}, in a full list"
            if self.is_in_bins(state["bins"], address):
                return f"free, {header}, sorted by pages"
        return None

    def is_in_bins(self, bins, address):
        if not int(bins):
            return False
        number = (address >> int(bins["shift_"])) % length_of_field("tcmalloc::PageBins", "used_")
        if not bins["used_"][number]:
            return False
        index, rest = divmod(address - int(bins["bins_"][number]["first"]), int(bins["size_"]))
        words = bins["bins_"][number]["free"]
        low, high = words.type.range()
        return rest == 0 and 0 <= index // 64 <= high - low and bool(int(words[index // 64]) >> (index % 64) & 1)


def length_of_field(type_name, field):
    low, high = gdb.lookup_type(type_name)[field].type.strip_typedefs().range()
    return high - low + 1


# ---- Samples and stacks --------------------------------------------------------------------------


def chunked(array, index):
    """Element `index` of a ChunkedArray, or None."""
    first = int(array.type.strip_typedefs().template_argument(1))
    chunk = (index // first + 1).bit_length() - 1
    base = scalar(array["chunks_"][chunk])
    return base[index - ((1 << chunk) - 1) * first] if int(base) else None


# Set in the number of frames of a stack that gets them later, when its copy is walked.
HAS_ALL_WORDS = 1 << 31


def frames_of(table, stack):
    if not stack:
        return []
    head = chunked(table["words_"], stack)
    if head is None:
        return []
    header_words = 2
    return words_at(int(head.address) + 8 * header_words, number(head["high"]) & (HAS_ALL_WORDS - 1))


def describe_code(address):
    """A line for a return address, with the call's place."""
    call = address - 1
    text = f"    @ {address:#x}"
    block = gdb.block_for_pc(call)
    while block is not None and block.function is None:
        block = block.superblock
    place = gdb.find_pc_line(call)
    if block is not None:
        text += f" {block.function.name}"
    else:
        symbol = gdb.execute(f"info symbol {call:#x}", to_string=True).strip()
        if not symbol.startswith("No symbol"):
            text += " " + symbol.split(" in section")[0]
    if place.symtab is not None:
        text += f"  {place.symtab.filename}:{place.line}"
    return text


def print_stack(table, stack):
    frames = frames_of(table, stack)
    for frame in frames:
        print(describe_code(frame))
    if not frames:
        print("    (its stack was not kept)" if not stack else "    (its stack is a copy that was not walked yet)")


def sample_in_place(span, object_start):
    """The number of the sample that stayed where this object of the span is, or 0."""
    table = variable("tcmalloc::sample_table")
    sample_id = span.first_sample
    while table is not None and sample_id:
        record = chunked(table["records_"], sample_id)
        if record is None or number(record["address"]) == object_start:
            return sample_id if record is not None else 0
        sample_id = number(record["next"])
    return 0


def print_sample(sample_id):
    table = variable("tcmalloc::sample_table")
    stacks = variable("tcmalloc::stack_table")
    if table is None or stacks is None or not sample_id:
        return
    record = chunked(table["records_"], sample_id)
    if record is None or number(record["version"]) % 2 == 0:
        return
    print(f"It is a sample: {number(record['requested'])} bytes, allocated by thread {number(record['thread'])} at:")
    print_stack(stacks, number(record["stack"]))


# ---- The debug libraries -------------------------------------------------------------------------


FAMILIES = {"kMalloc": "malloc", "kNew": "new", "kNewArray": "new[]"}
# By the lowest bits of a version.
STATES = ("kFree", "kLive", "kChanging", "kQueued")
STATE_NAMES = {"kLive": "live", "kChanging": "being freed or used again", "kQueued": "freed, in the free queue"}


# At least as many bytes without access follow a block in pages of its own.
GUARD_BYTES = 4096


class DebugBlocks:
    """The records of blocks, which lie in chunks."""

    RECORDS_IN_CHUNK = 1024
    ADDRESS_MASK = (1 << 48) - 1

    def __init__(self, heap):
        self.first_chunk = number(heap["records_"]["chunks_"])
        type_ = gdb.lookup_type("tcmalloc::BlockRecord")
        self.words = type_.sizeof // 8
        self.place_of = {field.name: divmod(field.bitpos, 64) for field in own_fields(type_)}

    def around(self, address):
        """The record of the block that has an address, fences included."""
        chunk = self.first_chunk
        while chunk:
            words = words_at(chunk, self.words * self.RECORDS_IN_CHUNK)
            for i in range(1, self.RECORDS_IN_CHUNK):
                if self.surrounds(words[i * self.words:(i + 1) * self.words], address):
                    return pointer_to(chunk + 8 * self.words * i, "tcmalloc::BlockRecord").dereference()
            chunk = self.field(words, "next")
        return None

    def field(self, words, name):
        """The bits from where a field begins to the end of its word."""
        word, bit = self.place_of[name]
        return words[word] >> bit

    def surrounds(self, record, address):
        user = self.field(record, "user")
        base = user - (self.field(record, "front") & self.ADDRESS_MASK)
        total = self.field(record, "total") & self.ADDRESS_MASK
        # A page without access is not counted in the total.
        guard = GUARD_BYTES if self.field(record, "paged") & 1 else 0
        return user != 0 and base <= address < base + total + guard


def thread_of(record, what):
    return int(record[f"{what}_thread_high"]) << 32 | int(record[f"{what}_thread_low"])


def print_debug_record(address):
    """Prints what the debug library knows, if it is one. Returns true if it knows the block."""
    heap = variable("tcmalloc::debug_heap")
    if heap is None:
        return False
    record = DebugBlocks(heap).around(address)
    if record is None:
        return False
    user, size = number(record["user"]), int(record["size"])
    state = STATES[number(record["version"]) % len(STATES)]
    family = FAMILIES.get(enumerator(record["family"]), "?")
    print(f"The debug library's block at {user:#x} has {size} bytes of {family} and is {STATE_NAMES.get(state, state)}.")
    if not user <= address < user + max(size, 1):
        side = f"{user - address} bytes before" if address < user else f"{address - user - size + 1} bytes beyond"
        print(f"The address is {side} it, in a fence.")
    elif address != user:
        print(f"The address is {address - user} bytes from its start.")
    stacks = variable("tcmalloc::(anonymous namespace)::fault_stacks")
    print(f"Allocated by thread {thread_of(record, 'allocating'):#x}:")
    if stacks is not None:
        print_stack(stacks, int(record["allocated_at"]))
    if state != "kLive":
        print(f"Freed by thread {thread_of(record, 'freeing'):#x}:")
        if stacks is not None:
            print_stack(stacks, int(record["freed_at"]))
    return True


# ---- Hardened mode -------------------------------------------------------------------------------


class BlockMap:
    """The states of blocks, one byte for each granule of memory."""

    GRANULE = 16
    LEAF_BYTES = 1 << 18
    PART_ENTRIES = (64 << 10) // 8
    FREE, QUARANTINED, LIVE = 0x7E, 0x7F, 0x80

    def __init__(self, map_):
        self.root = number(map_["root_"])
        self.low_leaves = number(map_["low_leaves_"])
        self.parts = int(map_["parts_"].address)

    def has_entry(self, leaf_number):
        """Returns true if that entry of the root is mapped."""
        part = leaf_number // self.PART_ENTRIES
        return leaf_number < self.low_leaves or word_at(self.parts + 8 * (part // 64)) >> part % 64 & 1 != 0

    def state(self, start):
        granule = start // self.GRANULE
        leaf_number = granule // self.LEAF_BYTES
        leaf = word_at(self.root + 8 * leaf_number) if self.has_entry(leaf_number) else 0
        return read((leaf + granule - 1) % (1 << 64), 1)[0] if leaf else 0


def print_if_waiting(start):
    """Says so if the program does not own an object that the allocator below has given out. Returns true if it does."""
    heap = variable("tcmalloc::hardened_heap")
    if heap is None:
        return False
    blocks = BlockMap(heap["map_"])
    state = blocks.state(start)
    if not blocks.root or state >= BlockMap.LIVE:
        return False
    waits = "freed, in the quarantine of hardened mode" if state == BlockMap.QUARANTINED else "free, and waits in hardened mode"
    print(f"It is {waits}.")
    return True


# ---- Guarded sampling ----------------------------------------------------------------------------


def guarded_slot(address):
    """The slot of the block for which an access at an address was meant, or None."""
    range_, blocks = variable("tcmalloc::heap")["guarded_"], variable("tcmalloc::guarded_blocks")
    begin, size = number(range_["begin_"]), number(range_["bytes_"])
    if blocks is None or not begin <= address < begin + size:
        return None
    # Slots have every second page; the others are guards.
    page = (address - begin) // number(blocks["page_bytes_"])
    candidates = {(page - 1) // 2, page // 2} & set(range(number(blocks["slot_count_"])))
    slots = [blocks["slots_"][i] for i in candidates]
    used = [slot for slot in slots if enumerator(slot["state"]) != "kUnused"]
    return min(used, key=lambda slot: distance_to(slot, address), default=None)


def distance_to(slot, address):
    begin = number(slot["begin"])
    return max(begin - address, address - begin - number(slot["size"]) + 1, 0)


def print_guarded_stack(what, stack):
    print(f"{what} by thread {number(stack['thread'])}:")
    for i in range(number(stack["count"])):
        print(describe_code(number(stack["frames"][i])))


def print_guarded(address):
    """Prints what is known of a guarded block, if it is one. Returns true if so."""
    slot = guarded_slot(address)
    if slot is None:
        return False
    begin, size = number(slot["begin"]), number(slot["size"])
    is_live = enumerator(slot["state"]) == "kLive"
    print(f"The guarded block at {begin:#x} has {size} bytes and is {'live' if is_live else 'freed'}.")
    if address < begin:
        print(f"The address is {begin - address} bytes before it.")
    elif address >= begin + size:
        print(f"The address is {address - begin - size + 1} bytes beyond it.")
    elif address != begin:
        print(f"The address is {address - begin} bytes from its start.")
    print_guarded_stack("Allocated", slot["allocated"])
    if not is_live:
        print_guarded_stack("Freed", slot["freed"])
    return True


# ---- heap block ----------------------------------------------------------------------------------


def print_place(address, start, size):
    if address != start:
        print(f"The address is {address - start} bytes from the start of the object at {start:#x}.")
    print(f"The object has {size} bytes, from {start:#x} to {start + size:#x}.")


def print_large(heap, span, address):
    start = span.first << heap.classes.page_shift
    print_place(address, start, span.pages << heap.classes.page_shift)
    if print_debug_record(address):
        return
    if not print_if_waiting(start):
        print("It is live.")
    print_sample(span.details & 0xFFFFFFFF)


def print_small(heap, span, address):
    start = span.first << heap.classes.page_shift
    size = heap.classes.size[span.size_class]
    index = (address - start) // size
    object_start = start + index * size
    if index >= span.capacity:
        print("No object has the address: it is in the rest of the span, which is too short for one.")
        return
    print_place(address, object_start, size)
    if index >= span.carved:
        print("It was never handed out.")
        return
    held = heap.holder(object_start, span)
    if held is not None:
        print(f"It is {held}.")
        return
    if print_debug_record(address) or print_if_waiting(object_start):
        return
    if heap.links.is_link(word_at(object_start)):
        print("It looks free, but no list has it: it is on its way between two, or behind a link that was overwritten.")
    else:
        print("It is live.")
        print_sample(sample_in_place(span, object_start))


def print_sampled(heap, span, address):
    start = span.first << heap.classes.page_shift
    page = pointer_to(span.details, "tcmalloc::SampledPage").dereference()
    unit = (1 << heap.classes.page_shift) // length_of(page["classes"])
    place = (address - start) // unit
    if number(page["used"]) >> place & 1 == 0:
        print("It is free, in a span of samples.")
        return
    while number(page["classes"][place]) == 0:
        place -= 1
    object_start = start + place * unit
    print_place(address, object_start, heap.classes.size[number(page["classes"][place])])
    if not print_debug_record(address):
        if not print_if_waiting(object_start):
            print("It is live.")
        print_sample(number(page["samples"][place]))


def print_block(address):
    heap = Heap()
    span = heap.span_around(address)
    if span is None:
        emergency = variable("tcmalloc::emergency_memory")
        if emergency is not None:
            begin = int(emergency.address)
            if begin <= address < begin + emergency.type.sizeof:
                print(f"{address:#x} is in the memory for signal handlers that interrupt the allocator.")
                return
        if print_debug_record(address) or print_guarded(address):
            return
        if heap.was_in_span(address):
            print(f"{address:#x} is in free pages that belonged to a span of the heap.")
        else:
            print(f"{address:#x} is in no span of the heap.")
        return
    begin = span.first << heap.classes.page_shift
    size = span.pages << heap.classes.page_shift
    what = {"kLarge": "of one large object", "kSampled": "of samples", "kFree": "of free pages",
            "kReturned": "of free pages, whose memory was given back to the system",
            "kInTransit": "of free pages, about to be given back to the system"}.get(span.state)
    if span.state == "kSmall":
        what = f"of {span.capacity} objects, {span.allocated} given out"
    text = f"{address:#x} is in the span at {begin:#x} of {size} bytes {what}"
    if span.state == "kSmall":
        text += f", class {span.size_class} ({heap.classes.size[span.size_class]} bytes)"
    print(text + ".")
    if span.state == "kLarge":
        print_large(heap, span, address)
    elif span.state == "kSampled":
        print_sampled(heap, span, address)
    elif span.in_use:
        print_small(heap, span, address)


# ---- heap stats ----------------------------------------------------------------------------------


class Statistics:
    """The sums of src/report/statistics_sums.cc, exact while no thread is in the allocator."""

    def __init__(self, heap):
        self.in_use = self.thread_free = self.cpu_free = 0
        self.transfer_free = self.central_free = self.untouched = 0
        self.small_spans = self.small_bytes = 0
        caches = heap.caches()
        spares = int(heap.value["caches_"]["spares_"]["count_"])
        self.thread_caches = max(len(caches) - spares, 0)
        slabs = heap.slabs()
        self.cpu_caches = len(slabs)
        in_threads = self.count_threads(heap, caches)
        in_slabs = self.count_slabs(heap, slabs)
        for c in range(1, heap.classes.count):
            self.add_class(heap, c, in_threads[c], in_slabs[c])
        self.add_samples()
        self.add_pages(heap)
        self.metadata = int(heap.value["arena_"]["stats_"]["used_bytes"])

    @staticmethod
    def count_threads(heap, caches):
        counts = [0] * heap.classes.count
        for cache in caches:
            for c in range(1, heap.classes.count):
                state = cache["states_"][c]
                objects = max(int(state["capacity"]) - int(cache["room"][c]), 0)
                objects += int(state["beside"]["count"])
                objects += number(state["kept"])
                counts[c] += objects
        return counts

    @staticmethod
    def count_slabs(heap, slabs):
        counts = [0] * heap.classes.count
        begins = variable("tcmalloc::kSlabBegin")
        if begins is None:
            return counts
        begin = [int(elements(begins)[c]) for c in range(heap.classes.count)]
        for _, memory, depot in slabs:
            tops = words_at(memory, heap.classes.count)
            for c in range(1, heap.classes.count):
                counts[c] += max((tops[c] & 0xFFFF) - begin[c], 0)
                counts[c] += number(depot["stocks_"][c]["objects"])
        return counts

    @staticmethod
    def central_stats(central):
        """The statistics of all central free lists of a class."""
        others = [central["others_"][i].dereference() for i in range(scalar(central["count_"]) - 1)]
        lists = [central["first_"], *others]
        return {field.name: sum(int(one["stats_"][field.name]) for one in lists)
                for field in central["first_"]["stats_"].type.fields()}

    def add_class(self, heap, c, in_threads, in_slabs):
        lists = heap.lists(c)
        if lists is None:
            return
        size = heap.classes.size[c]
        central = self.central_stats(lists["central"])
        given_out = central["allocated_objects"]
        transfer = min(int(lists["transfer"]["objects_"]), given_out)
        cpu = min(in_slabs, given_out - transfer)
        thread = min(in_threads, given_out - transfer - cpu)
        in_use = given_out - transfer - cpu - thread
        untouched = central["untouched_objects"]
        free = central["free_objects"] + central["uncarved_objects"] - untouched
        span_bytes = central["span_bytes"]
        tail = span_bytes - size * (given_out + free + untouched)
        self.in_use += in_use * size
        self.thread_free += thread * size
        self.cpu_free += cpu * size
        self.transfer_free += transfer * size
        self.central_free += free * size + tail
        self.untouched += untouched * size
        self.small_spans += central["spans"]
        self.small_bytes += span_bytes

    def add_samples(self):
        profiles = variable("tcmalloc::profiles")
        if profiles is None:
            return
        stats = profiles["objects"]["stats_"]
        span_bytes = int(stats["span_bytes"])
        # Kept memory counts as in use where it lies.
        in_use = max(int(stats["in_use_bytes"]) - number(profiles["kept_bytes"]), 0)
        self.in_use += in_use
        self.central_free += span_bytes - in_use
        self.small_bytes += span_bytes

    def add_pages(self, heap):
        pages = heap.value["page_heaps_"]["chosen_"]
        shift = heap.classes.page_shift
        self.page_heap = "huge" if "Huge" in str(pages.dynamic_type) else "classic"
        self.mapped = number(pages["total_"]) << shift
        committed = number(pages["committed_"]) << shift
        self.page_heap_free = number(pages["free_now_"]) << shift
        self.page_heap_returned = self.mapped - committed
        self.large = max(committed - self.page_heap_free - self.small_bytes, 0)
        self.in_use += self.large

    def show(self):
        rows = [
            (self.in_use, "bytes in use by the application"),
            (self.large, "of these, in large objects"),
            (self.page_heap_free, "bytes of free pages"),
            (self.central_free, "bytes in central free lists"),
            (self.transfer_free, "bytes in transfer caches"),
            (self.thread_free, f"bytes in caches of threads ({self.thread_caches})"),
            (self.cpu_free, f"bytes in caches of CPUs ({self.cpu_caches})"),
            (self.untouched, "bytes of spans that were never touched"),
            (self.page_heap_returned, "bytes of free pages that the system has"),
            (self.mapped, "bytes of address space for the heap, the sum"),
            (self.metadata, "bytes of the allocator's own records, besides"),
        ]
        print(f"TCMalloc, {self.page_heap} page heap")
        for amount, meaning in rows:
            print(f"{amount:>16} {meaning}")


# ---- Printers ------------------------------------------------------------------------------------


class SpanPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        span = Span(self.value)
        try:
            shift = SizeClasses().page_shift
        except Problem:
            return f"span of {span.pages} pages, {span.state}"
        text = f"span at {span.first << shift:#x} of {span.pages << shift} bytes, {span.state}"
        if span.state == "kSmall":
            text += f", class {span.size_class}, {span.allocated} of {span.capacity} objects given out, {span.carved} carved"
        return text


class ThreadHeaderPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        if int(self.value["rseq_area"]):
            closed = "AllocateClosed" in str(self.value["allocate"])
            kind = "served by the caches of CPUs"
        else:
            closed = int(self.value["size_limit"]) == 0
            kind = "with lists of its own"
        return f"thread {kind}, {'closed' if closed else 'open'} to the fast paths, {int(self.value['aborts'])} aborts"


class NumberPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return str(scalar(self.value))


def make_printers():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("tcmalloc")
    printers.add_printer("Span", "^tcmalloc::Span$", SpanPrinter)
    printers.add_printer("ThreadHeader", "^tcmalloc::ThreadHeader$", ThreadHeaderPrinter)
    printers.add_printer("number", r"^tcmalloc::(Length|PageId|Relaxed<.*>|SharedPages<.*>)$", NumberPrinter)
    return printers


# ---- Commands ------------------------------------------------------------------------------------


class HeapCommand(gdb.Command):
    """Look into the heap of TCMalloc: heap block ADDRESS, heap fault, heap stats."""

    def __init__(self):
        super().__init__("heap", gdb.COMMAND_DATA, prefix=True)

    def invoke(self, _argument, _from_tty):
        gdb.execute("help heap")


def run(action):
    try:
        action()
    except Problem as problem:
        raise gdb.GdbError(str(problem)) from None
    except gdb.error as problem:
        raise gdb.GdbError(f"cannot read the allocator's data: {problem}; is it of another version than this script?") from None


class BlockCommand(gdb.Command):
    """Tell what the allocator knows of an address: heap block ADDRESS.

The span and the size class, where the object begins and how large it is, if it is live, and where it
is if it is free; of a sample, and under the debug libraries, the stacks of allocation and free.
ADDRESS is any expression."""

    def __init__(self):
        super().__init__("heap block", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, _):
        if not argument.strip():
            raise gdb.GdbError("heap block needs an address")
        try:
            address = int(gdb.parse_and_eval(f"(unsigned long)({argument})"))
        except gdb.error as problem:
            raise gdb.GdbError(str(problem)) from None
        run(lambda: print_block(address))


class FaultCommand(gdb.Command):
    """Tell what the allocator knows of the address at which the program faulted: heap fault.

Under the debug library with TCMALLOC_PAGE_FENCE=1, a program faults at a read or write beyond a block
or after its free."""

    def __init__(self):
        super().__init__("heap fault", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def invoke(self, _argument, _from_tty):
        try:
            signal = int(gdb.parse_and_eval("$_siginfo.si_signo"))
            address = int(gdb.parse_and_eval("(unsigned long)$_siginfo._sifields._sigfault.si_addr"))
        except gdb.error:
            raise gdb.GdbError("the program has not stopped at a fault") from None
        bus, segmentation = 7, 11
        if signal not in (bus, segmentation):
            raise gdb.GdbError("the program has not stopped at a fault")
        run(lambda: print_block(address))


class StatsCommand(gdb.Command):
    """Tell where the memory of the heap is: heap stats.

The figures are those of MallocExtension::GetStats, read without the program's help."""

    def __init__(self):
        super().__init__("heap stats", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def invoke(self, _argument, _from_tty):
        run(lambda: Statistics(Heap()).show())


HeapCommand()
BlockCommand()
FaultCommand()
StatsCommand()
gdb.printing.register_pretty_printer(None, make_printers(), replace=True)
