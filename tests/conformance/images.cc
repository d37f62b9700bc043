// Images that are none, what the just-in-time compiler and the linker say, and where.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "check.h"

namespace conformance {
namespace {

const std::string kHead = ".version 7.0\n.target sm_75\n.address_size 64\n";
const std::string kCaller = kHead +
                            ".extern .func (.param .b32 r) Other(.param .b32 v);\n"
                            ".visible .entry Caller() {\n.reg .b32 %r<2>;\n{\n.param .b32 v;\n"
                            ".param .b32 r;\nst.param.b32 [v], 1;\ncall.uni (r), Other, (v);\n"
                            "ld.param.b32 %r1, [r];\n}\nret;\n}\n";
const std::string kOther = kHead +
                           ".visible .func (.param .b32 r) Other(.param .b32 v) {\n"
                           ".reg .b32 %r<2>;\nld.param.b32 %r1, [v];\nst.param.b32 [r], %r1;\n"
                           "ret;\n}\n";
const std::string kWrong = kHead + ".visible .entry Wrong() {\nuffish.u32 1;\nret;\n}\n";

// The options with outputs, and what became of them.
struct Outputs {
  char info[1000] = "", error[1000] = "";
  CUjit_option names[5] = {CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER,
                           CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                           CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* mark = reinterpret_cast<void*>(0x1234567);
  void* values[5] = {mark, info, reinterpret_cast<void*>(sizeof info), error,
                     reinterpret_cast<void*>(sizeof error)};
  void Show() const {
    const auto told = reinterpret_cast<size_t>(values[4]);
    VALUE(values[0] != mark);
    VALUE(reinterpret_cast<size_t>(values[2]) < sizeof info);
    VALUE(std::strlen(error) > 0);
    VALUE(told == std::strlen(error));
    VALUE(told == std::strlen(error) + 1);
  }
};

void Loads() {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  const char garbage[64] = "this is no image of any kind, whatever one does with it";
  const std::string newer = ".version 99.0\n.target sm_75\n.address_size 64\n";
  const std::string versionless = kHead.substr(kHead.find(".target"));
  CODE(cuModuleLoadData(&module, garbage));
  CODE(cuModuleLoadData(&module, versionless.c_str()));
  CODE(cuModuleLoadData(&module, kWrong.c_str()));
  CODE(cuModuleLoadData(&module, newer.c_str()));
  CODE(cuModuleLoadData(&module, kCaller.c_str()));
  CODE(cuModuleLoadFatBinary(&module, garbage));
  CODE(cuModuleLoadFatBinary(&module, kWrong.c_str()));
  CODE(cuModuleLoadFatBinary(&module, newer.c_str()));
  CODE(cuModuleLoadFatBinary(&module, nullptr));
  CODE(cuLibraryLoadData(&library, garbage, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CODE(cuLibraryLoadData(&library, kWrong.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CODE(cuLibraryLoadData(&library, newer.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CODE(cuModuleLoadDataEx(&module, newer.c_str(), 0, nullptr, nullptr));
  CODE(cuModuleLoadDataEx(&module, garbage, 0, nullptr, nullptr));
  CODE(cuModuleLoadDataEx(&module, kOther.c_str(), 1, nullptr, nullptr));
  char path[] = "/tmp/conformance.XXXXXX";
  const int file = mkstemp(path);
  for (const std::string& text : {kWrong, newer, std::string(garbage)}) {
    if (ftruncate(file, 0) != 0 || pwrite(file, text.data(), text.size(), 0) < 0) continue;
    CODE(cuModuleLoad(&module, path));
    CODE(cuLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
  }
  close(file);
  unlink(path);
  for (const std::string& text : {kOther, kWrong}) {
    Outputs of_module, of_library;
    CODE(cuModuleLoadDataEx(&module, text.c_str(), 5, of_module.names, of_module.values));
    of_module.Show();
    CODE(cuLibraryLoadData(&library, text.c_str(), of_library.names, of_library.values, 5, nullptr,
                           nullptr, 0));
    of_library.Show();
  }
}

CUresult Add(CUlinkState link, CUjitInputType type, const std::string& text) {
  return cuLinkAddData(link, type, const_cast<char*>(text.c_str()), text.size() + 1, "input", 0,
                       nullptr, nullptr);
}

void Links() {
  for (int parts = 0; parts < 4; ++parts) {
    Outputs outputs;
    CUlinkState link = nullptr;
    void* image = nullptr;
    size_t bytes = 0;
    CODE(cuLinkCreate(5, outputs.names, outputs.values, &link));
    if ((parts & 1) != 0) CODE(Add(link, CU_JIT_INPUT_PTX, kCaller));
    if ((parts & 2) != 0) CODE(Add(link, CU_JIT_INPUT_PTX, kOther));
    CODE(cuLinkComplete(link, &image, &bytes));
    VALUE(bytes > 0);
    VALUE(std::strstr(outputs.error, "Other") != nullptr);
    CODE(cuLinkDestroy(link));
  }
  Outputs outputs;
  CUlinkState link = nullptr;
  char garbage[64] = "neither PTX nor anything else";
  const std::string newer = ".version 99.0\n.target sm_75\n.address_size 64\n";
  CODE(cuLinkCreate(5, outputs.names, outputs.values, &link));
  CODE(Add(link, CU_JIT_INPUT_PTX, kWrong));
  outputs.Show();
  CODE(Add(link, CU_JIT_INPUT_PTX, garbage));
  CODE(Add(link, CU_JIT_INPUT_PTX, newer));
  CODE(Add(link, CU_JIT_INPUT_CUBIN, garbage));
  CODE(Add(link, CU_JIT_INPUT_FATBINARY, garbage));
  CODE(cuLinkAddData(link, CU_JIT_INPUT_PTX, nullptr, 10, "none", 0, nullptr, nullptr));
  CODE(cuLinkAddData(link, CU_JIT_INPUT_PTX, garbage, 0, "none", 0, nullptr, nullptr));
  CODE(cuLinkAddFile(link, CU_JIT_INPUT_PTX, "/no/such/file", 0, nullptr, nullptr));
  CODE(cuLinkAddFile(link, CU_JIT_INPUT_PTX, nullptr, 0, nullptr, nullptr));
  CODE(cuLinkComplete(link, nullptr, nullptr));
  CODE(cuLinkDestroy(link));
  CODE(cuLinkCreate(1, nullptr, nullptr, &link));
  CODE(cuLinkCreate(0, nullptr, nullptr, nullptr));
}

}  // namespace

void Images() {
  InContext in;
  Loads();
  Links();
}

}  // namespace conformance
