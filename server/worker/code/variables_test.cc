// What an image's variables take, found in its code before it is loaded.
#include "server/worker/code/variables.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace longwire::worker {
namespace {

uint64_t Of(const std::string& text, bool whole = true) {
  return VariableBytes(std::as_bytes(std::span(text)), whole);
}

uint64_t OfPtx(const std::string& declarations) {
  return Of(".version 7.0\n.target sm_70\n.address_size 64\n" + declarations + "\n");
}

TEST(VariableBytes, OfPtx) {
  EXPECT_EQ(OfPtx(""), 0u);
  EXPECT_EQ(OfPtx(".visible .global .align 4 .b8 table[1048576];"), 1048576u);
  EXPECT_EQ(OfPtx(".global .u64 one;\n.global .align 16 .v4 .f32 many[2][0x10];"), 8u + 512u);
  EXPECT_EQ(OfPtx(".extern .global .f16x2 pair[3];"), 12u);
  EXPECT_EQ(OfPtx(".global .texref picture;"), 0u);
  EXPECT_GE(OfPtx(".global .align 1 .b8 text[] = {1, 2, 3};"), 3u);
  EXPECT_EQ(OfPtx(".visible .entry f() { ld.global.u32 %r1, [%rd1+4096]; ret; }"), 0u);
  EXPECT_EQ(OfPtx(".global.b8 close[100];\n\t.global .b8\n  far\n [200] ;"), 300u);
}

TEST(VariableBytes, AbsurdNumbersDoNotOverflow) {
  EXPECT_GE(OfPtx(".global .b64 a[18446744073709551615][18446744073709551615];"),
            uint64_t{1} << 46);
  EXPECT_GE(OfPtx(".global .b8 a[99999999999999999999999999];"), uint64_t{1} << 46);
  EXPECT_LE(OfPtx(".global"), 100u);
  EXPECT_LE(OfPtx(".global .b8 a[[[[]]]],,,"), 1000u);
}

// A file with sections of these names, sizes and flags.
struct Section {
  std::string name;
  uint64_t bytes;
  uint64_t flags;
};
std::string Cubin(const std::vector<Section>& sections) {
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> headers(1);
  for (const Section& section : sections) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    header.sh_type = SHT_NOBITS;
    header.sh_flags = section.flags;
    header.sh_size = section.bytes;
    headers.push_back(header);
    names += section.name + '\0';
  }
  Elf64_Shdr table{};
  table.sh_offset = sizeof(Elf64_Ehdr);
  headers.push_back(table);
  Elf64_Ehdr file{};
  std::memcpy(file.e_ident, ELFMAG, SELFMAG);
  file.e_shoff = sizeof(file) + names.size();
  file.e_shentsize = sizeof(Elf64_Shdr);
  file.e_shnum = static_cast<Elf64_Half>(headers.size());
  file.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
  std::string all(reinterpret_cast<const char*>(&file), sizeof(file));
  all += names;
  all.append(reinterpret_cast<const char*>(headers.data()), headers.size() * sizeof(headers[0]));
  return all;
}

TEST(VariableBytes, OfCubins) {
  constexpr uint64_t kData = SHF_ALLOC | SHF_WRITE;
  const std::string cubin = Cubin({{".nv.global", 1 << 30, kData},
                                   {".nv.global.init", 1000, kData},
                                   {".nv.shared.f", 1 << 20, kData},
                                   {".text.f", 1 << 20, SHF_ALLOC | SHF_EXECINSTR},
                                   {".debug", 1 << 20, 0}});
  EXPECT_EQ(Of(cubin), (1u << 30) + 1000u);
  for (size_t length = 0; length < cubin.size(); ++length) {
    std::string part(cubin.begin(), cubin.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_LE(Of(part), (1u << 30) + (3u << 20)) << length;
  }
}

TEST(VariableBytes, OfNothing) {
  EXPECT_EQ(Of(""), 0u);
  EXPECT_EQ(Of("text"), 0u);
  EXPECT_EQ(Of(std::string(100, '\xff')), 0u);
}

}  // namespace
}  // namespace longwire::worker
