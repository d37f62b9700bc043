#include "probe/triton.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace longwire::probe {
namespace {

namespace fs = std::filesystem;

// Headers with a section of code for each name, as a cubin has them.
std::string Cubin(const std::vector<std::string>& kernels) {
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> sections(1);
  for (const std::string& kernel : kernels) {
    sections.emplace_back().sh_name = static_cast<uint32_t>(names.size());
    names += ".text." + kernel + '\0';
  }
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = static_cast<uint16_t>(sections.size());
  head.e_shoff = sizeof(head);
  sections[0].sh_offset = sizeof(head) + sections.size() * sizeof(Elf64_Shdr);
  sections[0].sh_size = names.size();
  std::string cubin(reinterpret_cast<const char*>(&head), sizeof(head));
  cubin.append(reinterpret_cast<const char*>(sections.data()),
               sections.size() * sizeof(Elf64_Shdr));
  return cubin + names;
}

std::string Ptx(const std::string& kernel, const std::string& target) {
  return ".version 8.0\n.target " + target + "\n.address_size 64\n.visible .entry " + kernel +
         "()\n{\nret;\n}\n";
}

class TritonTest : public ::testing::Test {
 protected:
  TritonTest() : folder_(::testing::TempDir() + "triton_XXXXXX") {
    EXPECT_NE(nullptr, mkdtemp(folder_.data()));
  }
  ~TritonTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    const fs::path path = fs::path(folder_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  bool Find(const std::string& cubin, int capability = 90) {
    return PtxInTritonCache(folder_, cubin, capability, &ptx_, &path_, &sentence_);
  }
  bool Says(const std::string& words) const { return sentence_.find(words) != std::string::npos; }

  std::string folder_;
  const std::string cubin_ = Cubin({"Add", "helper"});
  const std::string text_ = Ptx("Add", "sm_90") + ".func helper()\n{\nret;\n}\n";
  std::string ptx_, path_, sentence_;
};

TEST_F(TritonTest, TheTextBesideAnEqualCubinIsFound) {
  Write("AAA/other.cubin", std::string(cubin_.size(), 'x'));
  Write("AAA/other.ptx", Ptx("other", "sm_90"));
  Write("BBB/Add.json", "{}");
  Write("BBB/Add.cubin", cubin_);
  Write("BBB/Add.ptx", text_);
  ASSERT_TRUE(Find(cubin_)) << sentence_;
  EXPECT_EQ(text_, ptx_);
  EXPECT_TRUE(path_.ends_with("BBB/Add.ptx")) << path_;
}

TEST_F(TritonTest, OtherCubinsAndOtherImagesHaveNone) {
  Write("BBB/Add.cubin", cubin_);
  Write("BBB/Add.ptx", text_);
  std::string other = cubin_;
  other.back() = 'x';
  EXPECT_FALSE(Find(other));
  EXPECT_EQ("", sentence_);
  EXPECT_FALSE(Find(cubin_ + '\0'));
  EXPECT_FALSE(Find(text_));
  EXPECT_FALSE(
      Find("\x7f"
           "ELF"));
}

TEST_F(TritonTest, LinksAreNotFollowedWithinTheCache) {
  Write("elsewhere/BBB/Add.cubin", cubin_);
  Write("elsewhere/BBB/Add.ptx", text_);
  const std::string target = folder_ + "/elsewhere/BBB";
  fs::create_directory_symlink(target, folder_ + "/CCC");
  EXPECT_FALSE(Find(cubin_)) << "a folder's link";
  fs::create_directory(folder_ + "/DDD");
  fs::create_symlink(target + "/Add.cubin", folder_ + "/DDD/Add.cubin");
  EXPECT_FALSE(Find(cubin_)) << "a cubin's link";
  Write("EEE/Add.cubin", cubin_);
  fs::create_symlink(target + "/Add.ptx", folder_ + "/EEE/Add.ptx");
  EXPECT_FALSE(Find(cubin_)) << "a text's link";
  EXPECT_TRUE(Says("it is no file of yours")) << sentence_;
}

TEST_F(TritonTest, WhatOthersMayWriteIsNotRead) {
  Write("BBB/Add.cubin", cubin_);
  Write("BBB/Add.ptx", text_);
  fs::permissions(folder_ + "/BBB", fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(Find(cubin_));
  fs::permissions(folder_ + "/BBB", fs::perms::others_write, fs::perm_options::remove);
  EXPECT_TRUE(Find(cubin_)) << sentence_;
}

TEST_F(TritonTest, ATextThatIsNotTheCubinsIsRefusedWithTheReason) {
  Write("BBB/Add.cubin", cubin_);
  EXPECT_FALSE(Find(cubin_));
  EXPECT_TRUE(Says("BBB/Add.ptx cannot be used: it is no file of yours, is empty")) << sentence_;
  Write("BBB/Add.ptx", Ptx("Subtract", "sm_90"));
  EXPECT_FALSE(Find(cubin_));
  EXPECT_TRUE(Says("it lacks Add")) << sentence_;
  Write("BBB/Add.ptx", ".version 8.0\n.target sm_90\n.entry {");
  EXPECT_FALSE(Find(cubin_));
  EXPECT_TRUE(Says("PTX line ")) << sentence_;
  Write("BBB/Add.ptx", text_);
  EXPECT_FALSE(Find(cubin_, 80));
  EXPECT_TRUE(Says("it is for devices of compute capability 9.0")) << sentence_;
}

TEST_F(TritonTest, EveryBrokenHeaderIsRead) {
  for (size_t at = 0; at < cubin_.size(); ++at) {
    std::string broken = cubin_;
    broken[at] = static_cast<char>(broken[at] ^ 0xff);
    Write("BBB/Add.cubin", broken);
    Write("BBB/Add.ptx", text_);
    Find(broken);  // ends
  }
}

TEST_F(TritonTest, TheCacheIsWhereTritonHasIt) {
  setenv("HOME", "/home/somebody", 1);
  unsetenv("TRITON_HOME");
  unsetenv("TRITON_CACHE_DIR");
  EXPECT_EQ("/home/somebody/.triton/cache", TritonCache());
  setenv("TRITON_HOME", "/scratch", 1);
  EXPECT_EQ("/scratch/.triton/cache", TritonCache());
  setenv("TRITON_CACHE_DIR", "/cache", 1);
  EXPECT_EQ("/cache", TritonCache());
  unsetenv("TRITON_CACHE_DIR");
  unsetenv("TRITON_HOME");
}

}  // namespace
}  // namespace longwire::probe
