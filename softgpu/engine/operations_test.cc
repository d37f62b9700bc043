// Single operations on many operands, bit for bit against what a real device gave: the golden file
// holds a hash of each operation's results on an NVIDIA H200. Approximations are not among them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "softgpu/engine/test_device.h"
#include "softgpu/engine/test_kernels/operands.h"

namespace softgpu::testing {
namespace {

constexpr uint32_t kThreads = 2048;

// The operations' names, as operations.inc lists them: what stands in parentheses.
std::vector<std::string> ReadNames() {
  std::ifstream file(std::string(SOFTGPU_TEST_KERNELS) + "/operations.inc");
  std::vector<std::string> names;
  std::string line;
  while (std::getline(file, line)) {
    if (line.substr(0, 2) == "//") continue;
    for (size_t at = line.find('('); at != std::string::npos; at = line.find('(', at + 1)) {
      names.push_back(line.substr(at + 1, line.find(')', at) - at - 1));
    }
  }
  return names;
}

TEST(Operations, GiveWhatAnH200Gives) {
  std::vector<std::string> names = ReadNames();
  ASSERT_GT(names.size(), 250u);
  Device device("sm_90/operations");
  std::vector<uint64_t> operands = MakeOperands(kThreads);
  Array<uint64_t> in(operands.size()), out(names.size() * kThreads);
  std::copy(operands.begin(), operands.end(), in.data());
  EXPECT_RUNS(device.Run("operations", {kThreads / 128}, {128}, in, out, kThreads));
  std::ifstream golden(std::string(SOFTGPU_TEST_KERNELS) + "/operations_h200.txt");
  std::string comment;
  std::getline(golden, comment);
  for (size_t k = 0; k < names.size(); ++k) {
    std::string name;
    uint64_t hash = 0;
    golden >> name >> std::hex >> hash;
    ASSERT_EQ(name, names[k]);
    EXPECT_EQ(HashValues(out.data() + k * kThreads, kThreads), hash) << name;
  }
}

}  // namespace
}  // namespace softgpu::testing
