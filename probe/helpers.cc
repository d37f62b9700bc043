#include "probe/helpers.h"

#include "probe/include/longwire/probe.h"
#include "probe/probe.h"

namespace longwire::probe {

namespace {

constexpr uint32_t kMapTypes[] = {LW_ARRAY, LW_HISTOGRAM, LW_RING, LW_SPANS};

// The verifier only counts arguments; nothing runs on the host.
uint64_t None(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) { return 0; }

constexpr policy::HelperShape kHelpers[] = {
    {"lw_clock", None, 0},    {"lw_cycles", None, 0},      {"lw_map_get", None, 2},
    {"lw_map_set", None, 3},  {"lw_map_add", None, 3},     {"lw_histogram_add", None, 2},
    {"lw_ring_put", None, 5}, {"lw_since_first", None, 0}, {"lw_span_put", None, 4},
};

// The address of the key's entry into t0; p1: there is one.
std::string EntryOf(const policy::MapShape& map) {
  return "setp.lt.u64 %longwire_p1, %longwire_r2, " + std::to_string(map.entries) +
         ";\nselp.b64 %longwire_t1, %longwire_r2, 0, %longwire_p1;\n"
         "shl.b64 %longwire_t1, %longwire_t1, 3;\nmov.u64 %longwire_t0, " +
         SymbolOf(map) + ";\nadd.u64 %longwire_t0, %longwire_t0, %longwire_t1;\n";
}

std::string ArrayText(const std::string& helper, const policy::MapShape& map) {
  std::string text = EntryOf(map);
  if (helper == "lw_map_get") {
    return text +
           "mov.u64 %longwire_r0, 0;\n"
           "@%longwire_p1 ld.volatile.global.u64 %longwire_r0, [%longwire_t0];\n";
  }
  if (helper == "lw_map_set") {
    return text +
           "selp.b64 %longwire_r0, 1, 0, %longwire_p1;\n"
           "@%longwire_p1 st.volatile.global.u64 [%longwire_t0], %longwire_r3;\n";
  }
  return text +
         "mov.u64 %longwire_r0, 0;\n"
         "@%longwire_p1 atom.global.add.u64 %longwire_r0, [%longwire_t0], %longwire_r3;\n"
         "@%longwire_p1 add.u64 %longwire_r0, %longwire_r0, %longwire_r3;\n";
}

std::string HistogramText(const policy::MapShape& map) {
  return "clz.b64 %longwire_w0, %longwire_r2;\nsub.u32 %longwire_w0, 64, %longwire_w0;\n"
         "min.u32 %longwire_w0, %longwire_w0, " +
         std::to_string(kBuckets - 1) +
         ";\nmov.u32 %longwire_w1, %smid;\nand.b32 %longwire_w1, %longwire_w1, " +
         std::to_string(kHistogramCopies - 1) + ";\nmad.lo.u32 %longwire_w0, %longwire_w1, " +
         std::to_string(kBuckets) + ", %longwire_w0;\nmov.u64 %longwire_t0, " + SymbolOf(map) +
         ";\nmul.wide.u32 %longwire_t1, %longwire_w0, 8;\n"
         "add.u64 %longwire_t0, %longwire_t0, %longwire_t1;\n"
         "red.global.add.u64 [%longwire_t0], 1;\nmov.u64 %longwire_r0, 1;\n";
}

std::string RingText(const policy::MapShape& map) {
  return "mov.u64 %longwire_t0, " + SymbolOf(map) +
         ";\natom.global.add.u64 %longwire_t1, [%longwire_t0], 1;\n"
         "setp.lt.u64 %longwire_p1, %longwire_t1, " +
         std::to_string(map.entries) +
         ";\nselp.b64 %longwire_r0, 1, 0, %longwire_p1;\n"
         "shl.b64 %longwire_t1, %longwire_t1, 5;\n"
         "add.u64 %longwire_t0, %longwire_t0, %longwire_t1;\n"
         "@%longwire_p1 st.global.v2.u64 [%longwire_t0+32], {%longwire_r2, %longwire_r3};\n"
         "@%longwire_p1 st.global.v2.u64 [%longwire_t0+48], {%longwire_r4, %longwire_r5};\n";
}

// A record of a ring, whose first value is the kernel.
std::string SpanText(const policy::MapShape& map) {
  return std::string("mov.b64 %longwire_r5, %longwire_r4;\nmov.b64 %longwire_r4, %longwire_r3;\n") +
         "mov.b64 %longwire_r3, %longwire_r2;\nmov.u64 %longwire_r2, " + kKernel + ";\n" +
         RingText(map);
}

// A word has the launch's number in its upper 24 bits, and the low 40 of when its first call was.
// So one operation changes both.
std::string SinceFirstText() {
  return "mov.u64 %longwire_r0, %globaltimer;\nand.b64 %longwire_r0, %longwire_r0, 0xffffffffff;\n"
         "mov.u64 %longwire_t1, %gridid;\nand.b64 %longwire_t0, %longwire_t1, " +
         std::to_string(kLaunchWords - 1) +
         ";\nshl.b64 %longwire_t1, %longwire_t1, 40;\nshl.b64 %longwire_t0, %longwire_t0, 3;\n"
         "mov.u64 %longwire_t2, " +
         kLaunchTable +
         ";\nadd.u64 %longwire_t0, %longwire_t0, %longwire_t2;\n"
         "or.b64 %longwire_t3, %longwire_t1, %longwire_r0;\n"
         "ld.volatile.global.u64 %longwire_v, [%longwire_t0];\n"
         // Another launch's, or nothing: it becomes this one's. Who comes second finds the first.
         "xor.b64 %longwire_t2, %longwire_v, %longwire_t1;\nshr.u64 %longwire_t2, %longwire_t2, "
         "40;\n"
         "setp.ne.u64 %longwire_p1, %longwire_t2, 0;\n"
         "setp.eq.or.u64 %longwire_p1, %longwire_v, 0, %longwire_p1;\n"
         "mov.b64 %longwire_t2, %longwire_v;\n"
         "@%longwire_p1 atom.global.cas.b64 %longwire_t2, [%longwire_t0], %longwire_v, "
         "%longwire_t3;\n"
         "setp.eq.and.u64 %longwire_p2, %longwire_t2, %longwire_v, %longwire_p1;\n"
         "selp.b64 %longwire_t2, %longwire_t3, %longwire_t2, %longwire_p2;\n"
         "sub.u64 %longwire_r0, %longwire_r0, %longwire_t2;\n"
         "and.b64 %longwire_r0, %longwire_r0, 0xffffffffff;\n"
         // The clocks of multiprocessors tick a little apart: before the first is with the first.
         "setp.gt.u64 %longwire_p1, %longwire_r0, 0x7fffffffff;\n"
         "selp.b64 %longwire_r0, 0, %longwire_r0, %longwire_p1;\n";
}

}  // namespace

const policy::ObjectKind kProbes{"probe/", kMapTypes, "LW_ARRAY, LW_HISTOGRAM, LW_RING or LW_SPANS",
                                 "it has no probe: put a function at a point by LW_PROBE(point)"};

std::span<const policy::HelperShape> Helpers() { return kHelpers; }

std::optional<std::string> CallText(const std::string& helper, const policy::MapShape* map,
                                    std::string* wrong) {
  if (helper == "lw_clock") return "mov.u64 %longwire_r0, %globaltimer;\n";
  if (helper == "lw_cycles") return "mov.u64 %longwire_r0, %clock64;\n";
  if (helper == "lw_since_first") return SinceFirstText();
  const bool of_array = helper == "lw_map_get" || helper == "lw_map_set" || helper == "lw_map_add";
  const bool of_histogram = helper == "lw_histogram_add", of_ring = helper == "lw_ring_put";
  const bool of_spans = helper == "lw_span_put";
  if (!of_array && !of_histogram && !of_ring && !of_spans) {
    *wrong = "there is no helper '" + helper + "'; longwire/probe.h has those that there are";
    return std::nullopt;
  }
  if (map == nullptr) {
    *wrong = "it calls " + helper + " with something else than one map: name the map in the call";
    return std::nullopt;
  }
  if (of_array && map->type == LW_ARRAY) return ArrayText(helper, *map);
  if (of_histogram && map->type == LW_HISTOGRAM) return HistogramText(*map);
  if (of_ring && map->type == LW_RING) return RingText(*map);
  if (of_spans && map->type == LW_SPANS) return SpanText(*map);
  *wrong = "it calls " + helper + " for the map '" + map->name +
           "', which is of another type: lw_map_get, lw_map_set and lw_map_add are for LW_ARRAY, "
           "lw_histogram_add for LW_HISTOGRAM, lw_ring_put for LW_RING, lw_span_put for LW_SPANS";
  return std::nullopt;
}

bool HasRecords(const policy::MapShape& map) { return map.type == LW_RING || map.type == LW_SPANS; }

std::string SymbolOf(const policy::MapShape& map) { return "longwire_map_" + map.name; }

uint64_t BytesOf(const policy::MapShape& map) {
  switch (map.type) {
    case LW_HISTOGRAM:
      return uint64_t{kHistogramCopies} * kBuckets * sizeof(uint64_t);
    case LW_RING:
    case LW_SPANS:
      return uint64_t{map.entries + 1} * kRecordBytes;
    default:
      return uint64_t{map.entries} * sizeof(uint64_t);
  }
}

}  // namespace longwire::probe
