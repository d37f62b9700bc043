// Longwire's client library has the driver's name and its functions: it must not be taken for it.
#include "server/driver/driver_choice.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "server/driver/client_library.h"

namespace longwire {
namespace {

namespace fs = std::filesystem;

class DriverChoiceTest : public testing::Test {
 protected:
  ~DriverChoiceTest() override { fs::remove_all(folder_); }

  CUresult Choose(const std::string& choice, CUresult trial = CUDA_SUCCESS) {
    return ChooseDriver(
        choice, places_,
        [&](const LoadedDriver& tried, std::string* sentence) {
          tried_.push_back(tried.path);
          if (tried.software) return CUDA_SUCCESS;
          *sentence = "the trial failed";
          return trial;
        },
        &driver_, &sentence_);
  }

  // As a file of the driver's name in a folder of this test.
  std::string Install(const std::string& library, const std::string& folder) {
    fs::create_directories(folder_ / folder);
    fs::path place = folder_ / folder / "libcuda.so.1";
    fs::copy_file(library, place);
    return place;
  }

  void ExpectRefused(const std::string& path) {
    EXPECT_NE(sentence_.find(path + " is Longwire's client library"), std::string::npos)
        << sentence_;
    EXPECT_NE(sentence_.find("--driver or the key driver"), std::string::npos) << sentence_;
  }

  fs::path folder_ = [] {
    std::string name = (fs::temp_directory_path() / "driver_choice_XXXXXX").string();
    return fs::path(mkdtemp(name.data()));
  }();
  DriverPlaces places_{.nvidia = {}, .software = SOFTWARE_DRIVER};
  LoadedDriver driver_;
  std::string sentence_;
  std::vector<std::string> tried_;
};

TEST_F(DriverChoiceTest, OnlyTheClientLibraryIsRecognised) {
  EXPECT_TRUE(IsClientLibrary(CLIENT_LIBRARY));
  EXPECT_FALSE(IsClientLibrary(SOFTWARE_DRIVER));
  EXPECT_FALSE(IsClientLibrary("/nope"));
  EXPECT_FALSE(IsClientLibrary("/dev/null"));
}

TEST_F(DriverChoiceTest, TheClientLibraryIsRefusedByItsPath) {
  EXPECT_EQ(Choose(CLIENT_LIBRARY), CUDA_ERROR_NO_DEVICE);
  ExpectRefused(CLIENT_LIBRARY);
  EXPECT_TRUE(tried_.empty());
  // It was not loaded either: NVIDIA's libraries would find it by its name.
  EXPECT_EQ(dlopen(CLIENT_LIBRARY, RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST_F(DriverChoiceTest, AutoPassesOverAClientLibraryInTheDriversPlace) {
  places_.nvidia = {Install(CLIENT_LIBRARY, "first"), Install(SOFTWARE_DRIVER, "second")};
  EXPECT_EQ(Choose("auto"), CUDA_SUCCESS);
  EXPECT_EQ(driver_.path, places_.nvidia[1]);
  EXPECT_FALSE(driver_.software);
  EXPECT_EQ(driver_.not_nvidia, "");
}

TEST_F(DriverChoiceTest, AutoNamesTheClientLibraryWhereNoDriverIs) {
  places_.nvidia = {Install(CLIENT_LIBRARY, "only")};
  EXPECT_EQ(Choose("auto"), CUDA_SUCCESS);
  EXPECT_TRUE(driver_.software);
  sentence_ = driver_.not_nvidia;
  ExpectRefused(places_.nvidia[0]);
}

TEST_F(DriverChoiceTest, AutoFallsBackWhereTheDriverDoesNotWork) {
  places_.nvidia = {Install(SOFTWARE_DRIVER, "broken")};
  EXPECT_EQ(Choose("auto", CUDA_ERROR_UNKNOWN), CUDA_SUCCESS);
  EXPECT_TRUE(driver_.software);
  EXPECT_EQ(driver_.not_nvidia, "the trial failed");
  EXPECT_EQ(sentence_, "");
  EXPECT_EQ(tried_, (std::vector<std::string>{places_.nvidia[0], SOFTWARE_DRIVER}));
}

TEST_F(DriverChoiceTest, ANamedDriverHasNoSubstitute) {
  const std::string named = Install(SOFTWARE_DRIVER, "named");
  EXPECT_EQ(Choose(named, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH), CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  EXPECT_EQ(sentence_, "the trial failed");
  EXPECT_EQ(driver_.path, named);
}

TEST_F(DriverChoiceTest, TheSoftwareDeviceIsKnownAlsoByItsPath) {
  EXPECT_EQ(Choose("software"), CUDA_SUCCESS);
  EXPECT_TRUE(driver_.software);
  EXPECT_EQ(Choose(SOFTWARE_DRIVER), CUDA_SUCCESS);
  EXPECT_TRUE(driver_.software);
}

TEST_F(DriverChoiceTest, WhatIsNoDriverIsRefused) {
  EXPECT_EQ(Choose("/nope"), CUDA_ERROR_NO_DEVICE);
  EXPECT_NE(sentence_.find("cannot load the driver /nope"), std::string::npos) << sentence_;
  EXPECT_EQ(Choose("libm.so.6"), CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(sentence_, "libm.so.6 is no CUDA driver");
}

}  // namespace
}  // namespace longwire
