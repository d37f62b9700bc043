#include "server/daemon/statistics/describe.h"

#include <set>

#include "base/printable.h"
#include "server/rules/rules_of.h"

namespace longwire::daemon {
namespace {

using statistics::KernelFigures;
using statistics::KernelKey;
using statistics::KernelShape;

void FillFigures(const KernelFigures& figures, transport::KernelFigures* out) {
  out->set_launches(figures.launches);
  out->set_timed(figures.timed);
  out->set_blocks(figures.blocks);
  out->set_time(figures.nanoseconds);
  out->set_median(statistics::Median(figures.times));
  out->set_queued(figures.queued);
  out->set_queueing(figures.queueing);
  out->set_begun(figures.begun);
  out->set_beginning(figures.beginning);
}

void FillKernel(const KernelKey& key, const KernelFigures& figures, transport::KernelFigures* out) {
  const KernelShape& shape = figures.shape;
  // A worker wrote them.
  out->set_module(base::Printable(key.module));
  out->set_name(base::Printable(key.name));
  for (uint32_t size : key.block) out->add_block(size);
  out->set_dynamic_shared(key.dynamic_shared);
  out->set_static_shared(shape.static_shared);
  out->set_registers(shape.registers);
  out->set_local_bytes(shape.local_bytes);
  out->set_active_blocks(shape.active_blocks);
  out->set_multiprocessors(shape.multiprocessors);
  out->set_threads_limit(shape.threads_limit);
  out->set_blocks_limit(shape.blocks_limit);
  out->set_registers_limit(shape.registers_limit);
  out->set_shared_limit(shape.shared_limit);
  out->set_ptx(shape.is_ptx != 0);
  FillFigures(figures, out);
  for (uint64_t count : figures.times) out->add_times(static_cast<uint32_t>(count));
}

void FillProgram(SessionTable& table, const ProgramFigures& program,
                 transport::ProgramFigures* out) {
  out->set_tenant(program.tenant);
  out->set_program(program.program);
  out->set_sessions(program.sessions);
  out->set_ended(program.ended);
  out->set_seconds(program.seconds);
  out->set_local(program.local);
  for (const auto& [key, figures] : program.figures.kernels) {
    transport::KernelFigures* kernel = out->add_kernels();
    FillKernel(key, figures, kernel);
    auto drift = table.statistics().DriftOf(program.tenant, program.program, key);
    if (!drift) continue;
    kernel->set_earlier_median(drift->earlier);
    kernel->set_today_median(drift->today);
    kernel->set_earlier_days(drift->days);
  }
  out->set_other_kernels(program.figures.others);
  FillFigures(program.figures.rest, out->mutable_others());
  for (size_t i = 0; i < program.figures.counts.size(); ++i) {
    if (program.figures.counts[i] == 0) continue;
    transport::NamedCount* count = out->add_counts();
    count->set_name(statistics::kCountNames[i]);
    count->set_count(program.figures.counts[i]);
  }
  for (const auto& [name, use] : program.rules) {
    transport::RuleFigures* rule = out->add_rules();
    rule->set_name(name);
    rule->set_launches(use.launches);
    rule->set_calls(use.calls);
  }
}

}  // namespace

void AddRules(SessionTable& table, const Peer& peer, const std::string& program,
              transport::InspectReply* reply) {
  const auto config = table.config();
  std::set<std::string> tenants;
  for (const config::Tenant& tenant : config->tenants()) tenants.insert(tenant.name());
  if (tenants.empty()) tenants.insert("default");
  const std::vector<ProgramFigures> programs = table.statistics().List();
  for (const std::string& tenant : tenants) {
    if (!peer.SeesAll() && tenant != peer.tenant->name()) continue;
    const rules::RuleList list = rules::RulesOf(*config, tenant, program);
    transport::RulesInForce* in_force = reply->add_rules();
    in_force->set_tenant(tenant);
    const std::vector<std::byte> packed = message::Pack(rules::RuleList(list));
    in_force->set_rules(packed.data(), packed.size());
    std::map<std::string, RuleUse> uses;
    for (const ProgramFigures& seen : programs) {
      const std::string name = seen.program.substr(seen.program.rfind('/') + 1);
      if (seen.tenant != tenant || (seen.program != program && name != program)) continue;
      for (const auto& [rule, use] : seen.rules) {
        uses[rule].launches += use.launches;
        uses[rule].calls += use.calls;
      }
    }
    for (const rules::Rule& rule : list.rules) {
      transport::RuleFigures* figures = in_force->add_figures();
      figures->set_name(rule.name);
      figures->set_launches(uses[rule.name].launches);
      figures->set_calls(uses[rule.name].calls);
    }
  }
}

void AddPrograms(SessionTable& table, const Peer& peer, transport::InspectReply* reply) {
  reply->set_kernels_counted(table.config()->kernel_statistics() == config::sampled);
  for (const ProgramFigures& program : table.statistics().List()) {
    if (!peer.SeesAll() && program.tenant != peer.tenant->name()) continue;
    FillProgram(table, program, reply->add_programs());
  }
}

}  // namespace longwire::daemon
