// What moves along of a module's memory, by its image: PTX, cubins, and containers of both.
#include "server/worker/code/carried_variables.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace longwire::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kCapability = 90;

struct Symbol {
  std::string name;
  unsigned char type;
  uint16_t section;  // 0: of another file
  uint64_t offset = 0;
};
struct Address {
  uint32_t symbol;
  uint32_t type;
  int64_t addend;
};

// A cubin as nvcc writes it. Its sections: 1 .nv.global, 2 .nv.global.init, 3 .text.f,
// 4 .nv.shared.f, 5 relocations of `holder`, 6 .nv.callgraph, 7 symbols, 8 strings.
class Cubin {
 public:
  std::vector<Symbol> symbols;
  std::string holder = ".text.f";
  std::vector<Address> addresses;
  std::vector<uint32_t> calls = {0, 0xffffffff, 0, 0xfffffffe, 0, 0xfffffffd, 0, 0xfffffffc};

  std::string File() {
    file_.assign(sizeof(Elf64_Ehdr), '\0');
    headers_.assign(1, {});
    strings_.assign(1, '\0');
    Add(".nv.global", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, "", 4096);
    Add(".nv.global.init", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, std::string(64, 'x'), 64);
    Add(".text.f", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, std::string(128, 'c'), 128);
    Add(".nv.shared.f", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, "", 1024);
    std::string table;
    for (const Address& one : addresses) {
      Append(&table, Elf64_Rela{8, ELF64_R_INFO(uint64_t{one.symbol}, one.type), one.addend});
    }
    Add(".rela" + holder, SHT_RELA, 0, table, table.size());
    table.clear();
    for (uint32_t one : calls) Append(&table, one);
    Add(".nv.callgraph", SHT_LOPROC + 1, 0, table, table.size());
    AddSymbols();
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_shentsize = sizeof(Elf64_Shdr);
    head.e_shnum = static_cast<Elf64_Half>(headers_.size() + 1);
    head.e_shstrndx = static_cast<Elf64_Half>(headers_.size());
    Add(".strtab", SHT_STRTAB, 0, strings_, strings_.size());
    head.e_shoff = file_.size();
    std::memcpy(file_.data(), &head, sizeof(head));
    for (const Elf64_Shdr& one : headers_) Append(&file_, one);
    return file_;
  }

 private:
  template <class T>
  static void Append(std::string* to, const T& value) {
    to->append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  uint32_t Name(const std::string& name) {
    auto at = static_cast<uint32_t>(strings_.size());
    strings_ += name + '\0';
    return at;
  }

  void Add(const std::string& name, uint32_t type, uint64_t flags, const std::string& bytes,
           uint64_t size) {
    Elf64_Shdr one{};
    one.sh_name = Name(name);
    one.sh_type = type;
    one.sh_flags = flags;
    one.sh_offset = file_.size();
    // The strings are complete only once the last name is in.
    file_ += type == SHT_STRTAB ? strings_ : bytes;
    one.sh_size = type == SHT_STRTAB ? strings_.size() : size;
    headers_.push_back(one);
  }

  void AddSymbols() {
    std::string table;
    Append(&table, Elf64_Sym{});
    for (const Symbol& symbol : symbols) {
      Elf64_Sym one{};
      one.st_name = Name(symbol.name);
      one.st_info = ELF64_ST_INFO(STB_GLOBAL, symbol.type);
      one.st_shndx = symbol.section;
      one.st_value = symbol.offset;
      Append(&table, one);
    }
    Add(".symtab", SHT_SYMTAB, 0, table, table.size());
    headers_.back().sh_link = static_cast<Elf64_Word>(headers_.size());
  }

  std::string file_, strings_;
  std::vector<Elf64_Shdr> headers_;
};

// Two variables in one section, one in the other, a kernel.
Cubin Plain() {
  Cubin cubin;
  cubin.symbols = {{"count", STT_OBJECT, 1, 0},
                   {"table", STT_OBJECT, 1, 2048},
                   {"$str", STT_OBJECT, 2, 8},
                   {"f", STT_FUNC, 3},
                   {"vprintf", STT_FUNC, 0}};
  return cubin;
}

std::string Of(const std::string& image, std::vector<std::string>* names = nullptr,
               std::optional<uint32_t> capability = kCapability) {
  std::vector<std::string> ignored;
  return NamesOfVariables(std::as_bytes(std::span(image)), capability,
                          names == nullptr ? &ignored : names);
}

TEST(NamesOfVariables, OfACubin) {
  std::vector<std::string> names;
  EXPECT_EQ(Of(Plain().File(), &names), "");
  EXPECT_THAT(names, ElementsAre("count", "table", "$str"));
}

TEST(NamesOfVariables, TwoOfOneNameAreNotToldApart) {
  Cubin cubin = Plain();
  cubin.symbols.push_back({"count", STT_OBJECT, 2, 16});
  EXPECT_THAT(Of(cubin.File()), HasSubstr("one name"));
}

TEST(NamesOfVariables, ADeviceThatTakesPtxAloneHasNoCubins) {
  EXPECT_THAT(Of(Plain().File(), nullptr, std::nullopt), HasSubstr("not known"));
}

TEST(NamesOfVariables, TheHeapIsNotCarried) {
  Cubin cubin = Plain();
  cubin.symbols.push_back({"malloc", STT_FUNC, 0});
  EXPECT_THAT(Of(cubin.File()), HasSubstr("the device's heap"));
}

TEST(NamesOfVariables, UnknownPartsOfTheDriverAreNotCarried) {
  Cubin cubin = Plain();
  cubin.symbols.push_back({"something_else", STT_FUNC, 0});
  EXPECT_THAT(Of(cubin.File()), HasSubstr("something_else of the driver"));
  cubin = Plain();
  cubin.symbols.push_back({"elsewhere", STT_OBJECT, 0});
  EXPECT_THAT(Of(cubin.File()), HasSubstr("of another module"));
}

TEST(NamesOfVariables, AddressesOfFunctionsAreNotCarried) {
  constexpr uint32_t kFunction = 4, kVariable = 1, kForeign = 5;
  Cubin cubin = Plain();
  cubin.addresses = {{kFunction, 0x38, 0}};  // in code: it may be stored
  EXPECT_THAT(Of(cubin.File()), HasSubstr("addresses of code"));
  cubin.holder = ".nv.global.init";  // in a table of functions
  cubin.addresses = {{kFunction, 2, 16}};
  EXPECT_THAT(Of(cubin.File()), HasSubstr("addresses of code"));
  // Where to go on after a call, a call, addresses of variables and of the driver's functions.
  cubin.holder = ".text.f";
  cubin.addresses = {{kFunction, 0x38, 0x110}, {kFunction, 0x4b, 0}, {kVariable, 2, 0}};
  EXPECT_EQ(Of(cubin.File()), "");
  cubin.holder = ".nv.constant4";
  cubin.addresses = {{kForeign, 2, 0}, {kVariable, 2, 0}};
  EXPECT_EQ(Of(cubin.File()), "");
}

TEST(NamesOfVariables, FunctionsWhoseAddressesAreTaken) {
  Cubin cubin = Plain();
  cubin.calls.insert(cubin.calls.begin() + 2, {4, 5});
  EXPECT_EQ(Of(cubin.File()), "");  // f calls vprintf
  cubin.calls.insert(cubin.calls.end(), {4, 4});
  EXPECT_THAT(Of(cubin.File()), HasSubstr("addresses of code"));
}

TEST(NamesOfVariables, DamagedFilesAreRefused) {
  const std::string file = Plain().File();
  for (size_t bytes = 4; bytes < file.size(); ++bytes) {
    EXPECT_NE(Of(file.substr(0, bytes)), "") << bytes;
  }
  for (size_t at = 4; at < file.size(); ++at) {
    std::string other = file;
    other[at] = static_cast<char>(other[at] ^ 0xff);
    (void)Of(other);  // any answer, and no more
  }
}

TEST(NamesOfVariables, OfPtx) {
  std::vector<std::string> names;
  const std::string head = ".version 7.0\n.target sm_70\n.address_size 64\n";
  EXPECT_EQ(Of(head + ".visible .global .align 4 .b8 table[64];\n.const .f32 one;", &names), "");
  EXPECT_THAT(names, ElementsAre("table", "one"));
  EXPECT_THAT(Of(head + "call.uni (retval0), malloc, (param0);"), HasSubstr("heap"));
}

}  // namespace
}  // namespace longwire::worker
