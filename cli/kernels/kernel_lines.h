// The kernels of all programs of a server, those with the most time first, as text and as JSON.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/top/view.h"
#include "proto/transport.pb.h"

namespace longwire::cli::top {

// In at most `width` columns; 0: as many as needed. The first line has the titles.
std::vector<std::string> KernelLines(const transport::InspectReply& reply, int width);
std::string KernelsText(const transport::InspectReply& reply);
// One JSON object; what is not known is null.
std::string KernelsJson(const transport::InspectReply& reply);

// longwire top --kernels: as many as fit.
class KernelsView {
 public:
  void Set(std::shared_ptr<const transport::InspectReply> reply) {
    reply_ = std::move(reply);
    problem_.clear();
  }
  void SetProblem(std::string problem) { problem_ = std::move(problem); }
  void Press(Key key, const std::string& text = "");
  bool quit() const { return quit_; }
  std::vector<Line> Page(int width, int height) const;

 private:
  std::shared_ptr<const transport::InspectReply> reply_;
  std::string problem_;
  bool quit_ = false;
};

}  // namespace longwire::cli::top
