#include "client-shim/code/image.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace longwire::shim {
namespace {

struct Container {
  uint32_t magic = 0xba55ed50;
  uint16_t version = 1;
  uint16_t header_bytes = 16;
  uint64_t content_bytes = 0;
  char content[40] = {};
};

struct Wrapper {
  uint32_t magic = 0x466243b1;
  uint32_t version = 1;
  const void* container = nullptr;
  const void* last = nullptr;
};

TEST(Image, AContainerIsItsHeaderAndContent) {
  Container container;
  container.content_bytes = 40;
  Image image = MeasureImage(&container);
  EXPECT_EQ(ImageKind::kContainer, image.kind);
  EXPECT_EQ(56u, image.bytes.size());
}

TEST(Image, AContainerOfAbsurdSizeIsRefused) {
  Container container;
  container.content_bytes = uint64_t{1} << 63;
  EXPECT_TRUE(MeasureImage(&container).empty());
}

TEST(Image, AWrapperLeadsToItsContainer) {
  Container container;
  container.content_bytes = 8;
  Wrapper wrapper;
  wrapper.container = &container;
  Image image = MeasureImage(&wrapper);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(&container), image.bytes.data());
  EXPECT_EQ(24u, image.bytes.size());
}

TEST(Image, AWrapperOfSeparateCompilationHasItsPartsBeside) {
  Container linked, one, two;
  linked.content_bytes = 8;
  one.content_bytes = 8;
  two.content_bytes = 16;
  const void* parts[] = {&one, &two, nullptr};
  Wrapper wrapper;
  wrapper.version = 2;
  wrapper.container = &linked;
  wrapper.last = parts;
  Image image = MeasureImage(&wrapper);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(&linked), image.bytes.data());
  ASSERT_EQ(2u, image.parts.size());
  EXPECT_EQ(32u, image.parts[1].size());
}

TEST(Image, WhatWasNotLinkedHasPartsOnly) {
  Container linked, one;
  one.content_bytes = 8;
  const void* parts[] = {&one, nullptr};
  Wrapper wrapper;
  wrapper.version = 2;
  wrapper.container = &linked;
  wrapper.last = parts;
  Image image = MeasureImage(&wrapper);
  EXPECT_TRUE(image.bytes.empty());
  EXPECT_FALSE(image.empty());
  EXPECT_EQ(1u, image.parts.size());
}

TEST(Image, TextEndsWithItsZero) {
  Image image = MeasureImage(".version 8.0");
  EXPECT_EQ(ImageKind::kText, image.kind);
  EXPECT_EQ(13u, image.bytes.size());
}

// The program headers stand last, as the 13.0 tools write them.
TEST(Image, ACubinEndsWhereItsLastPartEnds) {
  alignas(8) std::byte bytes[1024] = {};
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = 200;
  header.e_shnum = 2;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_phoff = 500;
  header.e_phnum = 2;
  header.e_phentsize = sizeof(Elf64_Phdr);
  std::memcpy(bytes, &header, sizeof(header));
  EXPECT_EQ(500 + 2 * sizeof(Elf64_Phdr), CubinBytes(bytes));

  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = 700;
  section.sh_size = 100;
  std::memcpy(bytes + 200, &section, sizeof(section));
  EXPECT_EQ(800u, CubinBytes(bytes));
  section.sh_type = SHT_NOBITS;  // takes no room in the file
  std::memcpy(bytes + 200, &section, sizeof(section));
  EXPECT_EQ(500 + 2 * sizeof(Elf64_Phdr), CubinBytes(bytes));
  section.sh_type = SHT_PROGBITS;
  section.sh_size = UINT64_MAX - 10;
  std::memcpy(bytes + 200, &section, sizeof(section));
  EXPECT_EQ(0u, CubinBytes(bytes));
}

}  // namespace
}  // namespace longwire::shim
