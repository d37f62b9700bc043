// protoc-gen-longwire: the description of the CUDA driver API to the code of both ends.
// Parameter: numbers=PATH, the file of published wire numbers.
#include <google/protobuf/compiler/code_generator.h>
#include <google/protobuf/compiler/plugin.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstring>

#include "codegen/emitters.h"
#include "codegen/load.h"
#include "codegen/rules.h"

namespace longwire::codegen {
namespace {

using google::protobuf::FileDescriptor;
using google::protobuf::compiler::GeneratorContext;

class Generator : public google::protobuf::compiler::CodeGenerator {
 public:
  bool Generate(const FileDescriptor*, const std::string&, GeneratorContext*,
                std::string* error) const override {
    *error = "all files of the description belong into one run";
    return false;
  }

  bool GenerateAll(const std::vector<const FileDescriptor*>& files, const std::string& parameter,
                   GeneratorContext* context, std::string* error) const override {
    const std::string prefix = "numbers=";
    if (!parameter.starts_with(prefix)) {
      *error = "needs the parameter numbers=PATH";
      return false;
    }
    Errors errors;
    const auto numbers = ReadNumbers(parameter.substr(prefix.size()), &errors);
    Api api = Load(files, numbers, &errors);
    ApplyRules(&api, &errors);
    Check(&api, &errors);
    if (!errors.empty()) {
      for (const std::string& sentence : errors.list()) *error += sentence + "\n";
      return false;
    }
    for (const auto& emitter : MakeEmitters()) {
      for (const File& file : emitter->Emit(api)) Write(file, context);
    }
    return true;
  }

  uint64_t GetSupportedFeatures() const override { return FEATURE_PROTO3_OPTIONAL; }

 private:
  static void Write(const File& file, GeneratorContext* context) {
    std::unique_ptr<google::protobuf::io::ZeroCopyOutputStream> stream(context->Open(file.path));
    size_t at = 0;
    void* piece = nullptr;
    int bytes = 0;
    while (at < file.text.size() && stream->Next(&piece, &bytes)) {
      const size_t used = std::min(static_cast<size_t>(bytes), file.text.size() - at);
      std::memcpy(piece, file.text.data() + at, used);
      at += used;
      if (used < static_cast<size_t>(bytes)) stream->BackUp(bytes - static_cast<int>(used));
    }
  }
};

}  // namespace
}  // namespace longwire::codegen

int main(int argc, char** argv) {
  longwire::codegen::Generator generator;
  return google::protobuf::compiler::PluginMain(argc, argv, &generator);
}
