// What a load's reply says of a module's functions: attributes come along with few functions, and
// only as far as the driver can tell them.
#include "server/worker/code/loading.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "server/worker/calls/code/functions.h"
#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr int kAttributes = CU_FUNC_ATTRIBUTE_MAX;
constexpr CUfunction_attribute kLacking = CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;

// What the driver's functions below answer.
unsigned function_count = 0;
CUresult told = CUDA_SUCCESS;

CUresult TellAttribute(int* value, CUfunction_attribute attribute, int base) {
  if (told != CUDA_SUCCESS) return told;
  if (attribute == kLacking) return CUDA_ERROR_INVALID_VALUE;
  *value = base + attribute;
  return CUDA_SUCCESS;
}

// What the fake compiler and linker say: the same of every step, and how many steps there were.
CUresult compiled = CUDA_SUCCESS;
int linked_parts = 0, completed = 0;

// The outputs of one step: 2.5 ms, and a log.
void Write(unsigned count, const CUjit_option* names, void** values) {
  for (unsigned i = 0; i < count; ++i) {
    const float milliseconds = 2.5f;
    if (names[i] == CU_JIT_WALL_TIME) std::memcpy(&values[i], &milliseconds, sizeof milliseconds);
    if (names[i] == CU_JIT_ERROR_LOG_BUFFER) std::strcpy(static_cast<char*>(values[i]), "wrong");
    if (names[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) values[i] = reinterpret_cast<void*>(6);
  }
}

void AddLinker(DriverTable& table) {
  table.cuModuleLoadDataEx = [](CUmodule* module, const void*, unsigned count, CUjit_option* names,
                                void** values) {
    *module = reinterpret_cast<CUmodule>(0x60);
    Write(count, names, values);
    return compiled;
  };
  table.cuLinkCreate_v2 = [](unsigned count, CUjit_option* names, void** values,
                             CUlinkState* state) {
    *state = reinterpret_cast<CUlinkState>(0x70);
    Write(count, names, values);
    return CUDA_SUCCESS;
  };
  table.cuLinkAddData_v2 = [](CUlinkState, CUjitInputType, void*, size_t, const char*, unsigned,
                              CUjit_option*, void**) {
    ++linked_parts;
    return CUDA_SUCCESS;
  };
  table.cuLinkComplete = [](CUlinkState, void** image, size_t* bytes) {
    static char cubin[16] = "cubin";
    *image = cubin;
    *bytes = sizeof cubin;
    ++completed;
    return compiled;
  };
  table.cuLinkDestroy = [](CUlinkState) { return CUDA_SUCCESS; };
}

DriverTable Table() {
  DriverTable table = FakeDriver().table();
  AddLinker(table);
  table.cuModuleGetFunctionCount = [](unsigned* count, CUmodule) {
    *count = function_count;
    return CUDA_SUCCESS;
  };
  table.cuModuleEnumerateFunctions = [](CUfunction* functions, unsigned count, CUmodule) {
    for (unsigned i = 0; i < count; ++i) functions[i] = reinterpret_cast<CUfunction>(0x100 + i);
    return CUDA_SUCCESS;
  };
  table.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction) {
    return TellAttribute(value, attribute, 1000);
  };
  table.cuLibraryLoadData = [](CUlibrary* library, const void*, CUjit_option*, void**, unsigned,
                               CUlibraryOption*, void**, unsigned) {
    *library = reinterpret_cast<CUlibrary>(0x50);
    return CUDA_SUCCESS;
  };
  table.cuLibraryGetKernelCount = [](unsigned* count, CUlibrary) {
    *count = function_count;
    return CUDA_SUCCESS;
  };
  table.cuLibraryEnumerateKernels = [](CUkernel* kernels, unsigned count, CUlibrary) {
    for (unsigned i = 0; i < count; ++i) kernels[i] = reinterpret_cast<CUkernel>(0x200 + i);
    return CUDA_SUCCESS;
  };
  table.cuKernelGetName = [](const char** name, CUkernel) {
    *name = "kernel";
    return CUDA_SUCCESS;
  };
  table.cuKernelGetAttribute = [](int* value, CUfunction_attribute attribute, CUkernel,
                                  CUdevice device) {
    return TellAttribute(value, attribute, 2000 + 100 * device);
  };
  return table;
}

std::vector<Device> DeviceSeven() {
  std::vector<Device> devices = OneDevice();
  devices[0].handle = 7;  // as the driver counts
  return devices;
}

class Loading : public ::testing::Test {
 protected:
  Loading() : session_(Table(), DeviceSeven()) {
    told = compiled = CUDA_SUCCESS;
    linked_parts = completed = 0;
  }

  // Loads the bytes, with the options that `load` has.
  CUresult Send(std::span<const std::byte> image, calls::lwModuleLoad load) {
    calls::lwCopyData data;
    data.transfer = ++next_;
    data.data = image;
    session_.Send(data);
    load.library = ++next_;
    load.transfer = data.transfer;
    load.bytes = image.size();
    load.attributes_device = -1;
    answer_ = session_.ExpectReply(session_.Send(load));
    wire::Reader reader(answer_.payload);
    EXPECT_EQ(reply_.Decode(reader), wire::WireResult::kOk);
    return static_cast<CUresult>(answer_.header.code);
  }

  // Loads a module with `count` functions.
  const calls::lwModuleLoad::Reply& Load(unsigned count, int32_t device, bool as_library = false) {
    function_count = count;
    static const char image[] = "text";
    calls::lwCopyData data;
    data.transfer = ++next_;
    data.data = std::as_bytes(std::span(image));
    session_.Send(data);
    calls::lwModuleLoad load;
    load.library = ++next_;
    load.as_library = as_library;
    load.transfer = data.transfer;
    load.bytes = sizeof(image);
    load.attributes_device = device;
    answer_ = session_.ExpectReply(session_.Send(load));
    EXPECT_EQ(answer_.header.code, CUDA_SUCCESS);
    wire::Reader reader(answer_.payload);
    EXPECT_EQ(reply_.Decode(reader), wire::WireResult::kOk);
    EXPECT_EQ(reply_.function.size(), count);
    return reply_;
  }
  size_t WithAttributes() const {
    size_t count = 0;
    for (const calls::Function& function : reply_.function) count += function.attributes.size();
    return count;
  }

  TestSession session_;
  DownRecord answer_;
  calls::lwModuleLoad::Reply reply_;
  uint64_t next_ = 100;
};

TEST_F(Loading, FewFunctionsBringTheirAttributes) {
  for (unsigned count : {1u, static_cast<unsigned>(kMaxFunctionsWithAttributes)}) {
    Load(count, 0);
    for (const calls::Function& function : reply_.function) {
      ASSERT_EQ(function.attributes.size(), 1u);
      const calls::FunctionAttributes& attributes = function.attributes[0];
      EXPECT_EQ(attributes.device, -1) << "a module's function has no device";
      ASSERT_EQ(attributes.code.size(), static_cast<size_t>(kAttributes));
      ASSERT_EQ(attributes.value.size(), static_cast<size_t>(kAttributes));
      EXPECT_EQ(attributes.code[kLacking], CUDA_ERROR_INVALID_VALUE);
      EXPECT_EQ(attributes.code[CU_FUNC_ATTRIBUTE_NUM_REGS], CUDA_SUCCESS);
      EXPECT_EQ(attributes.value[CU_FUNC_ATTRIBUTE_NUM_REGS], 1000 + CU_FUNC_ATTRIBUTE_NUM_REGS);
    }
  }
}

TEST_F(Loading, ManyFunctionsBringNoneAndAreNotLoaded) {
  Load(kMaxFunctionsWithAttributes + 1, 0);
  EXPECT_EQ(WithAttributes(), 0u);
  EXPECT_EQ(session_.driver.function_loads, 0);
}

TEST_F(Loading, NoneComeThatAreNotWanted) {
  Load(1, -1);
  EXPECT_EQ(WithAttributes(), 0u);
  EXPECT_EQ(session_.driver.function_loads, 0);
}

TEST_F(Loading, KernelsBringThoseOfTheDevice) {
  Load(2, 0, true);
  ASSERT_EQ(WithAttributes(), 2u);
  const calls::FunctionAttributes& attributes = reply_.function[1].attributes[0];
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.value[CU_FUNC_ATTRIBUTE_NUM_REGS], 2700 + CU_FUNC_ATTRIBUTE_NUM_REGS);
  Load(2, 3, true);
  EXPECT_EQ(WithAttributes(), 0u) << "there is no device 3";
}

TEST_F(Loading, WhatTheDriverCannotTellYetIsAskedForLater) {
  told = CUDA_ERROR_FUNCTION_NOT_LOADED;
  Load(2, 0, true);
  EXPECT_EQ(WithAttributes(), 0u);
  calls::lwFunctionAttributes ask;
  ask.function = reply_.function[0].function;
  EXPECT_EQ(session_.ExpectReply(session_.Send(ask)).header.code, CUDA_ERROR_FUNCTION_NOT_LOADED);
  told = CUDA_SUCCESS;
  DownRecord answer = session_.ExpectReply(session_.Send(ask));
  EXPECT_EQ(answer.header.code, CUDA_SUCCESS);
  calls::lwFunctionAttributes::Reply reply;
  wire::Reader reader(answer.payload);
  ASSERT_EQ(reply.Decode(reader), wire::WireResult::kOk);
  EXPECT_EQ(reply.attributes.device, 0);
  EXPECT_EQ(reply.attributes.value.size(), static_cast<size_t>(kAttributes));
}

// What the driver writes over options' values comes back, also when it refuses.
TEST_F(Loading, WhatTheCompilerSaysComesBack) {
  static const char image[] = "text";
  for (CUresult result : {CUDA_SUCCESS, CUDA_ERROR_INVALID_PTX}) {
    compiled = result;
    calls::lwModuleLoad load;
    load.option = {CU_JIT_WALL_TIME, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                   CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    load.option_value = {7, 1, 100, 100};
    EXPECT_EQ(Send(std::as_bytes(std::span(image)), load), result);
    EXPECT_EQ(reply_.error_log, "wrong");
    ASSERT_EQ(reply_.outputs.place, (std::vector<uint32_t>{0, 2, 3}));
    EXPECT_EQ(reply_.outputs.value[0], std::bit_cast<uint32_t>(2.5f));
    EXPECT_EQ(reply_.outputs.value[1], 6u);
    EXPECT_EQ(reply_.outputs.value[2], 0u) << "there is no such log";
  }
}

// Of parts also one alone is linked: the driver loads what is not linked, and it does not work.
TEST_F(Loading, PartsAreLinkedHoweverMany) {
  std::vector<std::byte> container(24);
  const uint32_t magic = 0xBA55ED50;
  const uint16_t header_bytes = 16;
  const uint64_t rest = 8;
  std::memcpy(container.data(), &magic, sizeof magic);
  std::memcpy(container.data() + 6, &header_bytes, sizeof header_bytes);
  std::memcpy(container.data() + 8, &rest, sizeof rest);
  calls::lwModuleLoad load;
  EXPECT_EQ(Send(container, load), CUDA_SUCCESS);
  EXPECT_EQ(completed, 0);
  load.parts = true;
  EXPECT_EQ(Send(container, load), CUDA_SUCCESS);
  EXPECT_EQ(linked_parts, 1);
  EXPECT_EQ(completed, 1);
  std::vector<std::byte> two = container;
  two.insert(two.end(), container.begin(), container.end());
  EXPECT_EQ(Send(two, load), CUDA_SUCCESS);
  EXPECT_EQ(linked_parts, 3);
  compiled = CUDA_ERROR_INVALID_IMAGE;
  load.option = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  load.option_value = {1, 100};
  EXPECT_EQ(Send(two, load), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(reply_.error_log, "wrong");
}

}  // namespace
}  // namespace longwire::worker::testing
