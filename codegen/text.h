// Building generated text: lines with indentation, parameter lists, the header of every file.
#pragma once

#include <string>
#include <vector>

#include "codegen/model.h"

namespace longwire::codegen {

// Appends lines. Line("a $b$", {{"b", "x"}}) replaces names between dollar signs.
class Text {
 public:
  using Values = std::vector<std::pair<std::string, std::string>>;
  void Line(const std::string& pattern, const Values& values = {});
  // Several lines at once, as they are written.
  void Raw(const std::string& text) { text_ += text; }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

// The comment at the head of a generated file, with its include guard if it is a header.
std::string FileHead(const std::string& what, bool header);

// "CUstream hStream, unsigned int flags"
std::string ParameterList(const Call& call);
// "hStream, flags"; with `per_thread` the streams are wrapped in PerThread().
std::string ArgumentList(const Call& call, bool per_thread);

// The call's member of DriverTable: no name that cuda.h may redefine.
std::string DriverMember(const Call& call);

// C++ type of a wire field: "uint32_t", "std::vector<uint64_t>" …
std::string CppType(const WireField& field);
// The same without repeated and optional.
std::string ElementType(const WireField& field);
// Bytes that one element takes if that is fixed, else 0.
int FixedBytes(const WireField& field);

}  // namespace longwire::codegen
