#include "nvml-shim/facts.h"

#include <cuda.h>

#include <string_view>

namespace longwire::nvml {
namespace {

struct Brand {
  std::string_view name;  // begins with it
  unsigned number;
};
// The longer of two that fit comes first.
constexpr Brand kBrands[] = {{"NVIDIA GeForce", 5}, {"GeForce", 5}, {"NVIDIA TITAN", 6},
                             {"TITAN", 6},          {"Quadro", 1},  {"Tesla", 2},
                             {"NVIDIA RTX", 13},    {"NVIDIA", 14}};

struct Family {
  int from;               // compute capability, 10 * major + minor
  unsigned architecture;  // NVML's number
  unsigned cores;         // for each multiprocessor
};
// Up to the next one; newest first.
constexpr Family kFamilies[] = {{130, NVML_DEVICE_ARCH_UNKNOWN, 0},
                                {100, 10, 128},
                                {90, 9, 128},
                                {89, 8, 128},
                                {86, 7, 128},
                                {80, 7, 64},
                                {75, 6, 64},
                                {70, 5, 64},
                                {61, 4, 128},
                                {60, 4, 64},
                                {50, 3, 128},
                                {30, 2, 192}};

Family FamilyOf(const Seen& seen) {
  int capability = 10 * seen.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) +
                   seen.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  for (const Family& family : kFamilies) {
    if (capability >= family.from) return family;
  }
  return kFamilies[0];
}

}  // namespace

unsigned BrandOf(const std::string& name) {
  for (const Brand& brand : kBrands) {
    if (name.starts_with(brand.name)) return brand.number;
  }
  return 0;
}

unsigned ArchitectureOf(const Seen& seen) { return FamilyOf(seen).architecture; }

unsigned CoresOf(const Seen& seen) {
  int processors = seen.Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  return FamilyOf(seen).cores * static_cast<unsigned>(processors);
}

}  // namespace longwire::nvml
