// What a load's reply says of a module's functions: attributes come along with few functions, and
// only as far as the driver can tell them.
#include "server/worker/loading.h"

#include <gtest/gtest.h>

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

DriverTable Table() {
  DriverTable table = FakeDriver().table();
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
  Loading() : session_(Table(), DeviceSeven()) { told = CUDA_SUCCESS; }

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
  for (unsigned count : {1u, static_cast<unsigned>(kMostAttributesWithLoad)}) {
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
  Load(kMostAttributesWithLoad + 1, 0);
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

}  // namespace
}  // namespace longwire::worker::testing
