#include "probe/fields.h"

#include <cstddef>
#include <vector>

#include "probe/include/longwire/probe.h"

namespace longwire::probe {

namespace {

constexpr char kBlock[] =
    "mov.u32 %longwire_w0, %ctaid.x;\nmov.u32 %longwire_w1, %nctaid.x;\n"
    "mov.u32 %longwire_w2, %ctaid.y;\nmov.u32 %longwire_w3, %nctaid.y;\n"
    "mov.u32 %longwire_w4, %ctaid.z;\n"
    "cvt.u64.u32 %longwire_t0, %longwire_w2;\n"
    "mad.wide.u32 %longwire_t0, %longwire_w4, %longwire_w3, %longwire_t0;\n"
    "cvt.u64.u32 %longwire_t1, %longwire_w1;\ncvt.u64.u32 %longwire_t2, %longwire_w0;\n"
    "mad.lo.u64 %longwire_v, %longwire_t0, %longwire_t1, %longwire_t2;\n";
// The thread's number in its block into w0, the block's threads into w4.
constexpr char kInBlock[] =
    "mov.u32 %longwire_w0, %tid.x;\nmov.u32 %longwire_w1, %ntid.x;\n"
    "mov.u32 %longwire_w2, %tid.y;\nmov.u32 %longwire_w3, %ntid.y;\n"
    "mov.u32 %longwire_w4, %tid.z;\nmov.u32 %longwire_w5, %ntid.z;\n"
    "mad.lo.u32 %longwire_w2, %longwire_w4, %longwire_w3, %longwire_w2;\n"
    "mad.lo.u32 %longwire_w0, %longwire_w2, %longwire_w1, %longwire_w0;\n"
    "mul.lo.u32 %longwire_w4, %longwire_w1, %longwire_w3;\n"
    "mul.lo.u32 %longwire_w4, %longwire_w4, %longwire_w5;\n";
constexpr char kThread[] =
    "cvt.u64.u32 %longwire_t1, %longwire_w0;\ncvt.u64.u32 %longwire_t2, %longwire_w4;\n"
    "mad.lo.u64 %longwire_v, %longwire_v, %longwire_t2, %longwire_t1;\n";
constexpr char kWarp[] =
    "shr.u32 %longwire_w0, %longwire_w0, 5;\nadd.u32 %longwire_w4, %longwire_w4, 31;\n"
    "shr.u32 %longwire_w4, %longwire_w4, 5;\n";

std::string Narrow(const std::string& source) {
  return "mov.u32 %longwire_w0, " + source + ";\ncvt.u64.u32 %longwire_v, %longwire_w0;\n";
}

std::vector<Field> MakeFields() {
  const std::string block = kBlock, in_block = kInBlock, thread = kThread, warp = kWarp;
  return {
      {offsetof(lw_point, began), 8, "mov.b64 %longwire_v, %longwire_began;\n"},
      {offsetof(lw_point, began_cycles), 8, "mov.b64 %longwire_v, %longwire_began_cycles;\n"},
      {offsetof(lw_point, address), 8, "mov.b64 %longwire_v, %longwire_address;\n"},
      {offsetof(lw_point, thread), 8, block + in_block + thread},
      {offsetof(lw_point, warp), 8, block + in_block + warp + thread},
      {offsetof(lw_point, block), 8, block},
      {offsetof(lw_point, kernel), 4, std::string("mov.u64 %longwire_v, ") + kKernel + ";\n"},
      {offsetof(lw_point, sm), 4, Narrow("%smid")},
      {offsetof(lw_point, lane), 4, Narrow("%laneid")},
      {offsetof(lw_point, active), 4, Narrow("%longwire_active")},
      {offsetof(lw_point, lanes), 4,
       "popc.b32 %longwire_w0, %longwire_active;\ncvt.u64.u32 %longwire_v, %longwire_w0;\n"},
      {offsetof(lw_point, bytes), 4, std::string("mov.u64 %longwire_v, ") + kBytes + ";\n"},
      {offsetof(lw_point, access), 4, std::string("mov.u64 %longwire_v, ") + kAccess + ";\n"},
      {offsetof(lw_point, line), 4, std::string("mov.u64 %longwire_v, ") + kLine + ";\n"},
  };
}

}  // namespace

const Field* FieldAt(int64_t offset, int64_t bytes) {
  static const std::vector<Field> fields = MakeFields();
  for (const Field& field : fields) {
    if (offset >= field.offset && offset + bytes <= int64_t{field.offset} + field.bytes) {
      return &field;
    }
  }
  return nullptr;
}

bool IsBegan(const Field& field) { return field.offset == offsetof(lw_point, began); }
bool IsBeganCycles(const Field& field) { return field.offset == offsetof(lw_point, began_cycles); }
bool IsAddress(const Field& field) { return field.offset == offsetof(lw_point, address); }

bool Has(Point point, const Field& field) {
  const bool exits = point == Point::kKernelExit || point == Point::kBlockExit;
  if (IsBegan(field) || IsBeganCycles(field)) return exits;
  const bool of_access = IsAddress(field) || field.offset == offsetof(lw_point, bytes) ||
                         field.offset == offsetof(lw_point, access);
  if (of_access) return point == Point::kMemoryAccess;
  if (field.offset != offsetof(lw_point, line)) return true;
  return point == Point::kMemoryAccess || point == Point::kFence;
}

}  // namespace longwire::probe
