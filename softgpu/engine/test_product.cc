#include "softgpu/engine/test_product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace softgpu::testing {
namespace {

constexpr Element kElements[] = {
    {"b1", 1, 0, 0, 0, 1},        {"bf16", 16, 7, 127, -5, 5},  {"e4m3", 8, 3, 7, -5, 5},
    {"e5m2", 8, 2, 15, -5, 5},    {"f16", 16, 10, 15, -5, 5},   {"f32", 32, 23, 127, -5, 5},
    {"f64", 64, 52, 1023, -5, 5}, {"s32", 32, 0, 0, -5, 5},     {"s4", 4, 0, 0, -8, 7},
    {"s8", 8, 0, 0, -128, 127},   {"tf32", 32, 23, 127, -5, 5}, {"u4", 4, 0, 0, 0, 15},
    {"u8", 8, 0, 0, 0, 255},
};

// Registers as nvcc declares them.
std::string TypeOf(const Element& element) {
  if (element.name == "f32" || element.name == "f64") return "." + std::string(element.name);
  return ".b32";
}

void Load(std::ostream& text, const Registers& registers, char letter, uint32_t* offset) {
  for (uint32_t i = 0; i < registers.count(); ++i) {
    text << "  ld.global" << TypeOf(registers.element()) << " %" << letter << i << ", [%in + "
         << *offset << "];\n";
    *offset += 256;
  }
}

}  // namespace

const Element& FindElement(std::string_view name) {
  for (const Element& element : kElements) {
    if (element.name == name) return element;
  }
  throw std::runtime_error("no element " + std::string(name));
}

uint64_t Encode(const Element& element, int value) {
  uint64_t mask = element.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << element.bits) - 1;
  if (element.fraction == 0 || value == 0) return static_cast<uint64_t>(value) & mask;
  auto bits = std::bit_cast<uint64_t>(std::fabs(static_cast<double>(value)));
  uint64_t exponent = (bits >> 52) - 1023 + static_cast<uint64_t>(element.bias);
  uint64_t fraction = (bits & ((uint64_t{1} << 52) - 1)) >> (52 - element.fraction);
  uint64_t sign = value < 0 ? uint64_t{1} << (element.bits - 1) : 0;
  return sign | exponent << element.fraction | fraction;
}

double Decode(const Element& element, uint64_t bits) {
  if (element.name == "f64") return std::bit_cast<double>(bits);
  auto word = static_cast<uint32_t>(bits);
  if (element.name == "f32") return std::bit_cast<float>(word);
  if (element.name == "f16") return std::bit_cast<_Float16>(static_cast<uint16_t>(word));
  return static_cast<int32_t>(word);
}

Registers::Registers(const Element& element, uint32_t elements)
    : element_(&element), each_(std::max(32 / element.bits, 1u)), words_(elements / each_ * 32) {}

void Registers::Set(Place place, int value) {
  uint64_t bits = Encode(*element_, value) << (place.index % each_ * element_->bits);
  words_[place.index / each_ * 32 + place.lane] |= bits;
}

double Registers::Get(Place place) const {
  uint64_t word = words_[place.index / each_ * 32 + place.lane];
  return Decode(*element_, word >> (place.index % each_ * element_->bits));
}

std::string Registers::Names(char letter) const {
  std::ostringstream names;
  for (uint32_t i = 0; i < count(); ++i) names << (i == 0 ? "{%" : ", %") << letter << i;
  return names.str() + "}";
}

std::string ProductKernel(const std::string& instruction, const Registers& a, const Registers& b,
                          const Registers& c, const Registers& d, const std::string& selector) {
  std::ostringstream text;
  text << ".version 8.7\n.target sm_90\n.address_size 64\n"
       << ".visible .entry product(.param .u64 in, .param .u64 out)\n{\n"
       << "  .reg .b64 %in, %out, %lane;\n  .reg .b32 %thread, %metadata;\n";
  for (auto [registers, letter] : {std::pair(&a, 'a'), {&b, 'b'}, {&c, 'c'}, {&d, 'd'}}) {
    text << "  .reg " << TypeOf(registers->element()) << " %" << letter << "<" << registers->count()
         << ">;\n";
  }
  text << "  ld.param.u64 %in, [in];\n  ld.param.u64 %out, [out];\n  mov.u32 %thread, %tid.x;\n"
       << "  mul.wide.u32 %lane, %thread, 8;\n  add.s64 %in, %in, %lane;\n"
       << "  add.s64 %out, %out, %lane;\n";
  uint32_t offset = 0;
  Load(text, a, 'a', &offset);
  Load(text, b, 'b', &offset);
  Load(text, c, 'c', &offset);
  text << "  ld.global.b32 %metadata, [%in + " << offset << "];\n  " << instruction << " "
       << d.Names('d') << ", " << a.Names('a') << ", " << b.Names('b') << ", " << c.Names('c');
  if (!selector.empty()) text << ", %metadata, " << selector;
  text << ";\n";
  for (uint32_t i = 0; i < d.count(); ++i) {
    text << "  st.global" << TypeOf(d.element()) << " [%out + " << i * 256 << "], %d" << i << ";\n";
  }
  text << "  ret;\n}\n";
  return text.str();
}

}  // namespace softgpu::testing
