#include "cli/kernels/programs.h"

#include <algorithm>

#include "server/rules/pattern.h"

namespace longwire::cli {

std::string LastPart(const std::string& program) { return program.substr(program.rfind('/') + 1); }

bool IsProgram(const transport::ProgramFigures& program, const std::string& wanted) {
  return rules::Matches(wanted, program.program()) ||
         rules::Matches(wanted, LastPart(program.program()));
}

std::vector<transport::ProgramFigures> ProgramsOf(const transport::InspectReply& reply,
                                                  const std::string& wanted) {
  std::vector<transport::ProgramFigures> programs;
  for (const transport::ProgramFigures& program : reply.programs()) {
    if (IsProgram(program, wanted)) programs.push_back(program);
  }
  return programs;
}

statistics::KernelKey KeyOf(const transport::KernelFigures& kernel) {
  statistics::KernelKey key{kernel.module(), kernel.name(), {}, kernel.dynamic_shared()};
  for (int i = 0; i < kernel.block_size() && i < 3; ++i) {
    key.block[static_cast<size_t>(i)] = kernel.block(i);
  }
  return key;
}

statistics::KernelFigures FiguresOf(const transport::KernelFigures& kernel) {
  statistics::KernelFigures figures;
  statistics::KernelShape& shape = figures.shape;
  for (int i = 0; i < kernel.block_size() && i < 3; ++i) shape.block[i] = kernel.block(i);
  shape.dynamic_shared = kernel.dynamic_shared();
  shape.static_shared = kernel.static_shared();
  shape.registers = kernel.registers();
  shape.local_bytes = kernel.local_bytes();
  shape.active_blocks = kernel.active_blocks();
  shape.multiprocessors = kernel.multiprocessors();
  shape.threads_limit = kernel.threads_limit();
  shape.blocks_limit = kernel.blocks_limit();
  shape.registers_limit = kernel.registers_limit();
  shape.shared_limit = kernel.shared_limit();
  shape.is_ptx = kernel.ptx() ? 1 : 0;
  figures.launches = kernel.launches();
  figures.timed = kernel.timed();
  figures.blocks = kernel.blocks();
  figures.nanoseconds = kernel.time();
  figures.queued = kernel.queued();
  figures.queueing = kernel.queueing();
  figures.begun = kernel.begun();
  figures.beginning = kernel.beginning();
  const auto buckets = std::min<int>(kernel.times_size(), statistics::kTimeBuckets);
  for (int i = 0; i < buckets; ++i) figures.times[static_cast<size_t>(i)] = kernel.times(i);
  return figures;
}

statistics::ProgramSeen SeenOf(const transport::ProgramFigures& program) {
  statistics::ProgramSeen seen;
  seen.seconds = program.seconds();
  for (const transport::KernelFigures& kernel : program.kernels()) {
    const statistics::KernelKey key = KeyOf(kernel);
    seen.figures.kernels[key] = FiguresOf(kernel);
    if (kernel.earlier_days() == 0) continue;
    seen.drifts[key] = {kernel.earlier_median(), kernel.today_median(), kernel.earlier_days()};
  }
  seen.figures.rest = FiguresOf(program.others());
  seen.figures.others = program.other_kernels();
  for (const transport::NamedCount& count : program.counts()) {
    auto found = std::ranges::find(statistics::kCountNames, count.name());
    if (found == statistics::kCountNames.end()) continue;
    seen.figures.counts[static_cast<size_t>(found - statistics::kCountNames.begin())] =
        count.count();
  }
  return seen;
}

std::string NothingCounted(const transport::InspectReply& reply, const std::string& wanted) {
  if (!reply.kernels_counted()) {
    return "the server counts no kernels: its administrator sets kernel_statistics: sampled in "
           "longwired's configuration, and longwire admin reload puts it in force";
  }
  const char* whose = reply.other_tenants_left_out() ? " of your tenant" : "";
  return "the server has seen no kernel of a program '" + wanted + "'" + whose +
         " since it began to count; run it, and see longwire top --kernels for the names it knows";
}

}  // namespace longwire::cli
