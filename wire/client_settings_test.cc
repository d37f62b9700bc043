#include "wire/client_settings.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace longwire::wire {
namespace {

class IdentityFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/longwire-files-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    own_ = folder_ + "/.config/longwire";
    system_ = folder_ + "/etc";
    std::filesystem::create_directories(own_);
    std::filesystem::create_directories(system_);
    setenv("HOME", folder_.c_str(), 1);
    Clear();
  }
  void TearDown() override {
    Clear();
    std::filesystem::remove_all(folder_);
  }
  static void Clear() {
    for (const char* name : {"LONGWIRE_CERT", "LONGWIRE_KEY", "LONGWIRE_CA"}) unsetenv(name);
  }
  static std::string Write(const std::string& path) {
    std::ofstream(path) << "text";
    return path;
  }
  IdentityFiles Find() { return FindIdentityFiles(ClientSettings("/nowhere"), system_); }

  std::string folder_, own_, system_;
};

TEST_F(IdentityFilesTest, NothingAnywhereIsNone) { EXPECT_TRUE(Find().none()); }

TEST_F(IdentityFilesTest, TheUsersOwnFilesWinOverTheSystems) {
  for (const char* name : {"client.crt", "client.key", "ca.crt"}) Write(system_ + "/" + name);
  EXPECT_EQ(Find().certificate, system_ + "/client.crt");
  EXPECT_EQ(Find().key, system_ + "/client.key");
  EXPECT_EQ(Find().authority, system_ + "/ca.crt");
  Write(own_ + "/client.crt");
  EXPECT_EQ(Find().certificate, system_ + "/client.crt") << "a certificate without its key";
  Write(own_ + "/client.key");
  EXPECT_EQ(Find().certificate, own_ + "/client.crt");
  EXPECT_EQ(Find().key, own_ + "/client.key");
  EXPECT_EQ(Find().authority, system_ + "/ca.crt");
  Write(own_ + "/ca.crt");
  EXPECT_EQ(Find().authority, own_ + "/ca.crt");
}

TEST_F(IdentityFilesTest, WhatIsNamedBringsItsNeighbours) {
  std::string certificate = Write(folder_ + "/alice.crt");
  setenv("LONGWIRE_CERT", certificate.c_str(), 1);
  EXPECT_EQ(Find().certificate, certificate);
  EXPECT_EQ(Find().key, "");
  Write(folder_ + "/alice.key");
  Write(folder_ + "/ca.crt");
  EXPECT_EQ(Find().key, folder_ + "/alice.key");
  EXPECT_EQ(Find().authority, folder_ + "/ca.crt");
  setenv("LONGWIRE_KEY", "/other.key", 1);
  setenv("LONGWIRE_CA", "/other.crt", 1);
  EXPECT_EQ(Find().key, "/other.key");
  EXPECT_EQ(Find().authority, "/other.crt");
}

TEST_F(IdentityFilesTest, NoneSwitchesThemOff) {
  Write(own_ + "/client.crt");
  Write(own_ + "/client.key");
  EXPECT_FALSE(Find().none());
  setenv("LONGWIRE_CERT", "none", 1);
  EXPECT_TRUE(Find().none());
}

TEST_F(IdentityFilesTest, PathsBecomeAbsolute) {
  setenv("LONGWIRE_CERT", "here.crt", 1);
  EXPECT_EQ(Find().certificate, std::filesystem::current_path().string() + "/here.crt");
}

}  // namespace
}  // namespace longwire::wire
