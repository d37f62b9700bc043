#include "cli/kernels/kernel_lines.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "cli/json/json_object.h"
#include "cli/kernels/programs.h"
#include "cli/text.h"
#include "cli/top/table.h"

namespace longwire::cli::top {
namespace {

using statistics::KernelFigures;
using statistics::OccupancyOf;
using statistics::TimeText;

struct Row {
  const transport::ProgramFigures* program;
  const transport::KernelFigures* kernel;
  KernelFigures figures;
  double time = 0;  // of all launches
};

std::vector<Row> RowsOf(const transport::InspectReply& reply) {
  std::vector<Row> rows;
  for (const transport::ProgramFigures& program : reply.programs()) {
    for (const transport::KernelFigures& kernel : program.kernels()) {
      const KernelFigures figures = FiguresOf(kernel);
      rows.push_back({&program, &kernel, figures, figures.GpuNanoseconds()});
    }
  }
  std::ranges::stable_sort(rows, std::greater{}, &Row::time);
  return rows;
}

std::string MeanText(uint64_t sum, uint64_t count) {
  if (count == 0) return "-";
  return TimeText(static_cast<double>(sum) / static_cast<double>(count));
}

std::string BlockText(const transport::KernelFigures& kernel) {
  std::string text;
  for (uint32_t size : kernel.block()) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

std::string OccupancyText(const Row& row) {
  auto occupancy = OccupancyOf(row.figures.shape);
  if (!occupancy) return "-";
  char text[64];
  std::snprintf(text, sizeof(text), "%.0f%% %s", 100 * occupancy->share, Name(occupancy->limit));
  return text;
}

std::string ShareText(double time, double all) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f%%", all == 0 ? 0 : 100 * time / all);
  return text;
}

std::string NumberOrNull(uint64_t sum, uint64_t count) {
  if (count == 0) return "null";
  return std::to_string(sum / count);
}

std::string RowJson(const Row& row) {
  const transport::KernelFigures& kernel = *row.kernel;
  const KernelFigures& figures = row.figures;
  auto occupancy = OccupancyOf(figures.shape);
  char share[32];
  std::snprintf(share, sizeof(share), "%.4f", occupancy ? occupancy->share : 0);
  JsonObject object;
  object.Add("tenant", row.program->tenant()).Add("program", row.program->program());
  object.Add("kernel", kernel.name()).Add("module", kernel.module());
  object.Add("block", BlockText(kernel));
  object.Add("launches", kernel.launches()).Add("timed", kernel.timed());
  object.AddValue("gpu_nanoseconds",
                  kernel.timed() == 0 ? "null" : std::to_string(static_cast<uint64_t>(row.time)));
  object.AddValue(
      "median_nanoseconds",
      kernel.timed() == 0 ? "null" : std::to_string(static_cast<uint64_t>(kernel.median())));
  object.AddValue("mean_queueing_nanoseconds", NumberOrNull(kernel.queueing(), kernel.queued()));
  object.AddValue("mean_launch_to_start_nanoseconds",
                  NumberOrNull(kernel.beginning(), kernel.begun()));
  object.AddValue("occupancy", occupancy ? share : "null");
  object.AddValue("limited_by", occupancy ? JsonString(Name(occupancy->limit)) : "null");
  object.Add("active_blocks", uint64_t{kernel.active_blocks()});
  object.Add("registers", uint64_t{kernel.registers()});
  object.Add("shared_bytes", uint64_t{kernel.static_shared()} + kernel.dynamic_shared());
  object.Add("local_bytes", uint64_t{kernel.local_bytes()});
  return object.Text();
}

// What is not in the lines.
std::string NoteText(const transport::InspectReply& reply) {
  if (!reply.kernels_counted() && reply.programs_size() == 0) return NothingCounted(reply, "");
  uint64_t kernels = 0, launches = 0, graphs = 0;
  for (const transport::ProgramFigures& program : reply.programs()) {
    kernels += program.other_kernels();
    launches += program.others().launches();
    for (const transport::NamedCount& count : program.counts()) {
      if (count.name() == "graph_launches") graphs += count.count();
    }
  }
  std::string text;
  if (launches != 0) {
    text = std::to_string(launches) + " launches of kernels that are not listed" +
           (kernels == 0 ? "" : " (" + std::to_string(kernels) + " kernels)") + "; ";
  }
  return text + std::to_string(graphs) + " graph launches, whose kernels are not counted";
}

}  // namespace

std::vector<std::string> KernelLines(const transport::InspectReply& reply, int width) {
  Table table({{"PROGRAM", 6, false, 1},
               {"KERNEL", 12},
               {"BLOCK", 5, false, 2},
               {"LAUNCHES", 1, true},
               {"TIME", 1, true},
               {"SHARE", 1, true},
               {"MEDIAN", 1, true},
               {"QUEUED", 1, true, 4},
               {"TO START", 1, true, 3},
               {"OCCUPANCY", 4, false, 1},
               {"REGS", 1, true, 5},
               {"SHARED", 1, true, 5}});
  const std::vector<Row> rows = RowsOf(reply);
  double all = 0;
  for (const Row& row : rows) all += row.time;
  for (const Row& row : rows) {
    const transport::KernelFigures& kernel = *row.kernel;
    table.Add({LastPart(row.program->program()), kernel.name(), BlockText(kernel),
               std::to_string(kernel.launches()), kernel.timed() == 0 ? "-" : TimeText(row.time),
               ShareText(row.time, all), kernel.timed() == 0 ? "-" : TimeText(kernel.median()),
               MeanText(kernel.queueing(), kernel.queued()),
               MeanText(kernel.beginning(), kernel.begun()), OccupancyText(row),
               std::to_string(kernel.registers()),
               BytesText(uint64_t{kernel.static_shared()} + kernel.dynamic_shared())});
  }
  return table.Lines(width);
}

std::string KernelsText(const transport::InspectReply& reply) {
  std::string text;
  for (std::string line : KernelLines(reply, 0)) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text + NoteText(reply) + "\n";
}

std::string KernelsJson(const transport::InspectReply& reply) {
  std::string list;
  for (const Row& row : RowsOf(reply)) list += (list.empty() ? "" : ",") + RowJson(row);
  JsonObject object;
  object.Add("counted", reply.kernels_counted()).AddValue("kernels", "[" + list + "]");
  return object.Text();
}

void KernelsView::Press(Key key, const std::string& text) {
  quit_ |= key == Key::kInterrupt || (key == Key::kText && text == "q");
}

std::vector<Line> KernelsView::Page(int width, int height) const {
  std::vector<Line> page;
  page.push_back({"longwire top --kernels: since the server began", Style::kHead});
  page.push_back({problem_.empty() && reply_ != nullptr ? NoteText(*reply_) : problem_,
                  problem_.empty() ? Style::kPlain : Style::kAlarm});
  const auto rows = static_cast<size_t>(std::max(1, height));
  if (reply_ != nullptr) {
    for (const std::string& line : KernelLines(*reply_, width)) {
      page.push_back({line, page.size() == 2 ? Style::kTitles : Style::kPlain});
    }
  }
  page.resize(rows - 1);
  page.push_back({"q quit", Style::kFoot});
  for (Line& line : page) line.text = Fit(line.text, width);
  return page;
}

}  // namespace longwire::cli::top
