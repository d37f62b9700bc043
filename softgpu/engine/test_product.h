// For the tests of mma: one product's kernel, and where its operands' elements lie in a warp's
// registers as PTX describes it, from the element's side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace softgpu::testing {

struct Element {
  std::string_view name;
  uint32_t bits;
  int fraction;  // bits; 0: an integer
  int bias;
  int least, most;  // of the integers that tests use
};
const Element& FindElement(std::string_view name);  // "f16"
uint64_t Encode(const Element& element, int value);
double Decode(const Element& element, uint64_t bits);

struct Place {
  uint32_t lane = 0;
  uint32_t index = 0;  // of the lane's elements
};

// One operand's registers: 8 bytes for each lane, register after register.
class Registers {
 public:
  Registers(const Element& element, uint32_t elements);  // elements of a lane
  uint32_t count() const { return static_cast<uint32_t>(words_.size() / 32); }
  const std::vector<uint64_t>& words() const { return words_; }
  std::vector<uint64_t>& words() { return words_; }
  void Set(Place place, int value);
  double Get(Place place) const;
  const Element& element() const { return *element_; }
  std::string Names(char letter) const;  // "{%a0, %a1}"

 private:
  const Element* element_;
  uint32_t each_;  // elements in a register
  std::vector<uint64_t> words_;
};

// PTX of `kernel`(in, out), which loads a, b, c and one register of metadata, and stores d.
// `selector` is that of mma.sp, else empty.
std::string ProductKernel(const std::string& instruction, const Registers& a, const Registers& b,
                          const Registers& c, const Registers& d, const std::string& selector);

}  // namespace softgpu::testing
