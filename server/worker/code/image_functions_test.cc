// The functions and parameters in an image, for drivers that do not tell them: what nvcc made of
// one source as PTX, cubin and fat binary, and damaged ones.
#include "server/worker/code/image_functions.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace longwire::worker {
namespace {

std::map<std::string, FunctionParameters> Of(const std::string& image) {
  return FunctionsOfImage(std::as_bytes(std::span(image)));
}

FunctionParameters OfEntry(const std::string& parameters) {
  auto found = Of(".version 7.0\n.target sm_70\n.visible .entry f(" + parameters + ") { ret; }\n");
  return found.contains("f") ? found["f"] : FunctionParameters{{99, 99}};
}

TEST(ImageFunctions, ParametersOfPtx) {
  using Expected = FunctionParameters;
  EXPECT_EQ(OfEntry(""), Expected{});
  EXPECT_EQ(OfEntry(".param .u64 a,\n\t.param .u8 b,\n\t.param .u32 c"),
            (Expected{{0, 8}, {8, 1}, {12, 4}}));
  EXPECT_EQ(OfEntry(".param .u32 n, .param .align 8 .b8 odd[32], .param .f64 d"),
            (Expected{{0, 4}, {8, 32}, {40, 8}}));
  // The alignment of what a pointer points to is not the parameter's.
  EXPECT_EQ(OfEntry(".param .u32 n, .param .u64 .ptr .global .align 1 p"),
            (Expected{{0, 4}, {8, 8}}));
  EXPECT_EQ(OfEntry(".param .u64 a /* , .param .u32 x */ , // .param .u32 y\n .param .u16 b"),
            (Expected{{0, 8}, {8, 2}}));
}

TEST(ImageFunctions, WhatCannotBeReadIsLeftOut) {
  const FunctionParameters kNone{{99, 99}};
  for (const char* bad : {".param", ".param .u64", "u64 a", ".param .align 0 .b8 a[3]",
                          ".param .b8 a[99999999999999999999]", ".param .b8 a[40000]", ",",
                          ".param .align 4096 .b8 a[4], .param .align x .b8 b[2]"}) {
    EXPECT_EQ(OfEntry(bad), kNone) << bad;
  }
  EXPECT_TRUE(Of("").empty());
  EXPECT_TRUE(Of("// .entry f()").empty());
  EXPECT_TRUE(Of(".entry").empty());
}

TEST(ImageFunctions, OtherForms) {
  auto found =
      Of(".entry one\n(\n.param .u64 one_param_0\n)\n.maxntid 32, 1, 1\n{ ret; }\n"
         ".weak .entry _Z3twov()\n{ ret; }\n.entry three { ret; }\n.entryfour() {}\n");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found["one"].size(), 1u);
  EXPECT_TRUE(found.contains("_Z3twov"));
  EXPECT_TRUE(found.contains("three"));
}

std::string Read(const std::string& name) {
  std::ifstream file(LONGWIRE_TEST_KERNELS "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The cubin has device functions of their own, too, of which a driver makes no kernel.
TEST(ImageFunctions, OneSourceInEveryForm) {
  const auto expected = Of(Read("test_kernels.ptx"));
  ASSERT_GT(expected.size(), 5u);
  bool has_parameters = false;
  for (const char* name : {"test_kernels.cubin", "plain.fatbin", "zstd.fatbin", "lz4.fatbin"}) {
    auto found = Of(Read(name));
    for (const auto& [function, parameters] : expected) {
      ASSERT_TRUE(found.contains(function)) << name << " " << function;
      EXPECT_EQ(found[function], parameters) << name << " " << function;
      has_parameters |= parameters.size() > 2;
    }
  }
  EXPECT_TRUE(has_parameters);
}

TEST(ImageFunctions, DamagedImages) {
  for (const char* name : {"test_kernels.ptx", "test_kernels.cubin", "zstd.fatbin"}) {
    const std::string image = Read(name);
    for (size_t bytes = 0; bytes < image.size(); bytes += 1 + bytes / 16) {
      Of(image.substr(0, bytes));
      std::string changed = image;
      changed[bytes] = static_cast<char>(~changed[bytes]);
      Of(changed);
    }
  }
}

}  // namespace
}  // namespace longwire::worker
