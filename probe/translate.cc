#include "probe/translate.h"

#include "probe/arithmetic.h"
#include "probe/constants.h"
#include "probe/fields.h"
#include "probe/helpers.h"

namespace longwire::probe {

namespace {

using policy::Instruction;

constexpr int64_t kSlot = 8;
constexpr uint8_t kExit = 0x95;
constexpr uint8_t kAlways = 0x05;
constexpr uint8_t kByRegister = 0x08;
constexpr uint8_t kAtomicMode = 0xc0, kModes = 0xe0;
enum Class : uint8_t { kLd, kLdx, kSt, kStx, kAlu, kJmp, kJmp32, kAlu64 };

int64_t SizeOf(uint8_t code) {
  constexpr int64_t kSizes[] = {4, 2, 1, 8};
  return kSizes[(code & 0x18) >> 3];
}

std::string Bits(int64_t offset, int64_t size) {
  return std::to_string(offset * 8) + ", " + std::to_string(size * 8);
}

class Translator {
 public:
  Translator(const policy::HookCode& code, const std::map<uint32_t, policy::Place>& places,
             std::span<const policy::MapShape> maps, Probe* probe, std::string* sentence)
      : code_(code),
        places_(places),
        maps_(maps),
        constants_(code),
        probe_(probe),
        sentence_(sentence) {}

  bool Run() {
    for (at_ = 0; at_ < code_.instructions.size(); ++at_) {
      constants_.Reach(at_);
      if (constants_.IsTarget(at_)) text_ += Label(at_) + ":\n";
      if (!Step()) return false;
      constants_.Step(at_);
      if (code_.instructions[at_].code == policy::kLoadWide) ++at_;
    }
    Finish();
    return true;
  }

 private:
  const Instruction& instruction() const { return code_.instructions[at_]; }
  std::string Target() const { return RegisterName(instruction().registers & 0x0f); }
  std::string Source() const { return RegisterName(instruction().registers >> 4); }
  static std::string Label(size_t at) {
    return std::string("$longwire_") + kSite + "_" + std::to_string(at);
  }

  bool Refuse(const std::string& what) {
    *sentence_ = code_.Place(at_) + ": " + what;
    return false;
  }

  bool Step() {
    switch (instruction().code & 0x07) {
      case kLd:
        text_ += "mov.b64 " + Target() + ", " + std::to_string(WideConstant(code_, at_)) + ";\n";
        return true;
      case kLdx:
        return Load();
      case kSt:
      case kStx:
        return Store();
      case kAlu64:
        if (ArithmeticText(instruction(), &text_)) return true;
        return Refuse("it computes in a way that is not known: compile with -mcpu=v2");
      default:
        return Jump();
    }
  }

  bool Jump() {
    if (instruction().code == policy::kCall) return Call();
    if (instruction().code == kExit) {
      text_ += std::string("bra.uni $longwire_") + kSite + "_end;\n";
      return true;
    }
    const std::string to = Label(at_ + 1 + static_cast<size_t>(instruction().offset));
    if (instruction().code == kAlways) {
      text_ += "bra.uni " + to + ";\n";
      return true;
    }
    if (JumpText(instruction(), to, &text_)) return true;
    return Refuse("it jumps in a way that is not known: compile with -mcpu=v2");
  }

  bool Call() {
    const auto index = constants_.Get(1);
    const policy::MapShape* map = index && *index < maps_.size() ? &maps_[*index] : nullptr;
    std::string wrong;
    const auto call = CallText(code_.helpers.at(at_), map, &wrong);
    if (!call) return Refuse(wrong);
    text_ += *call;
    return true;
  }

  // The register of a stack's slot; empty with a sentence if the access is across two.
  std::string SlotAt(const policy::Place& place, int64_t size) {
    const int64_t within = place.offset % kSlot;
    if (within + size > kSlot) {
      Refuse("it reads or writes across a variable: access whole ones");
      return "";
    }
    slots_used_ = true;
    return "%longwire_s" + std::to_string(place.offset / kSlot);
  }

  bool Load() {
    const policy::Place& place = places_.at(at_);
    const int64_t size = SizeOf(instruction().code);
    if (place.on_stack) {
      const std::string slot = SlotAt(place, size);
      if (slot.empty()) return false;
      text_ +=
          "bfe.u64 " + Target() + ", " + slot + ", " + Bits(place.offset % kSlot, size) + ";\n";
      return true;
    }
    const Field* field = FieldAt(place.offset, size);
    if (field == nullptr) return Refuse("it reads across two fields: read whole ones");
    if (!Has(probe_->point, *field)) {
      text_ += "mov.b64 " + Target() + ", 0;\n";
      return true;
    }
    probe_->reads_began |= IsBegan(*field);
    probe_->reads_began_cycles |= IsBeganCycles(*field);
    probe_->reads_address |= IsAddress(*field);
    text_ += field->text;
    text_ += size == field->bytes ? "mov.b64 " + Target() + ", %longwire_v;\n"
                                  : "bfe.u64 " + Target() + ", %longwire_v, " +
                                        Bits(place.offset - field->offset, size) + ";\n";
    return true;
  }

  bool Store() {
    const policy::Place& place = places_.at(at_);
    const uint8_t code = instruction().code;
    if ((code & kModes) == kAtomicMode) {
      return Refuse("it uses an atomic operation of its own: use lw_map_add");
    }
    if (!place.on_stack) {
      return Refuse("it writes its argument: a probe reads it only, so write a map");
    }
    const int64_t size = SizeOf(code);
    const std::string slot = SlotAt(place, size);
    if (slot.empty()) return false;
    std::string value = Source();
    if ((code & 0x07) == kSt) {
      text_ += "mov.b64 %longwire_v, " + std::to_string(instruction().immediate) + ";\n";
      value = "%longwire_v";
    }
    text_ += size == kSlot ? "mov.b64 " + slot + ", " + value + ";\n"
                           : "bfi.b64 " + slot + ", " + value + ", " + slot + ", " +
                                 Bits(place.offset % kSlot, size) + ";\n";
    return true;
  }

  // One of the lanes that are there together runs the code: the first.
  void Finish() {
    std::string head =
        "{ // a probe of longwire\n"
        ".reg .b64 %longwire_r<11>, %longwire_t<4>, %longwire_v;\n"
        ".reg .b32 %longwire_w<8>, %longwire_active;\n.reg .pred %longwire_p<4>;\n";
    if (slots_used_) head += ".reg .b64 %longwire_s<64>;\n";
    const bool of_block = probe_->point == Point::kBlockEnter || probe_->point == Point::kBlockExit;
    const std::string end = std::string("$longwire_") + kSite + "_end";
    head += "activemask.b32 %longwire_active;\n";
    head += of_block ? "mov.u32 %longwire_w0, %tid.x;\nmov.u32 %longwire_w1, %tid.y;\n"
                       "or.b32 %longwire_w0, %longwire_w0, %longwire_w1;\n"
                       "mov.u32 %longwire_w1, %tid.z;\n"
                       "or.b32 %longwire_w0, %longwire_w0, %longwire_w1;\n"
                     : "mov.u32 %longwire_w0, %lanemask_lt;\n"
                       "and.b32 %longwire_w0, %longwire_w0, %longwire_active;\n";
    head += "setp.ne.u32 %longwire_p0, %longwire_w0, 0;\n@%longwire_p0 bra " + end + ";\n";
    // Pointers are not used as such; what is never written reads as zero.
    head += "mov.b64 %longwire_r1, 0;\nmov.b64 %longwire_r10, 0;\n";
    for (int i = 0; slots_used_ && i < 64; ++i) {
      head += "mov.b64 %longwire_s" + std::to_string(i) + ", 0;\n";
    }
    probe_->text = head + text_ + end + ":\n}\n";
  }

  const policy::HookCode& code_;
  const std::map<uint32_t, policy::Place>& places_;
  const std::span<const policy::MapShape> maps_;
  Constants constants_;
  Probe* const probe_;
  std::string* const sentence_;
  uint32_t at_ = 0;
  bool slots_used_ = false;
  std::string text_;
};

}  // namespace

bool Translate(const policy::HookCode& code, const std::map<uint32_t, policy::Place>& places,
               std::span<const policy::MapShape> maps, Probe* probe, std::string* sentence) {
  return Translator(code, places, maps, probe, sentence).Run();
}

}  // namespace longwire::probe
