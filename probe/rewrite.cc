#include "probe/rewrite.h"

#include <fnmatch.h>

#include <algorithm>
#include <vector>

#include "probe/helpers.h"
#include "probe/sites.h"

namespace longwire::probe {

namespace {

using softgpu::PtxError;

constexpr int kOldestVersion = 62;  // of PTX: it has activemask

void ReplaceAll(std::string* text, const std::string& what, const std::string& by) {
  for (size_t at = text->find(what); at != std::string::npos;
       at = text->find(what, at + by.size())) {
    text->replace(at, what.size(), by);
  }
}

class Rewriter {
 public:
  Rewriter(std::string_view ptx, const ProbeSet& set, const std::string& kernels)
      : ptx_(ptx), set_(set), kernels_(kernels), sites_(ptx) {}

  Rewritten Run() {
    const size_t own = ptx_.find("longwire_");
    if (own != std::string_view::npos) {
      throw PtxError(LineAt(own),
                     "it has names with longwire_, which are those of probes: rename them");
    }
    const softgpu::PtxModule module = softgpu::ParsePtx(ptx_);
    if (module.version < kOldestVersion) {
      throw PtxError(LineAt(ptx_.find(".version")),
                     "it is of version " + std::to_string(module.version / 10) + "." +
                         std::to_string(module.version % 10) +
                         "; probes need 6.2: compile it with CUDA 9.2 or newer");
    }
    for (const Probe& probe : set_.probes) wanted_.push_back(probe.point);
    const size_t head = sites_.EndOfHead();
    Rewritten rewritten;
    std::string body;
    done_ = head;
    for (const softgpu::PtxFunction& function : module.functions) {
      const std::string name(function.name);
      if (!function.has_body || fnmatch(kernels_.c_str(), name.c_str(), 0) != 0) continue;
      const uint32_t hash = HashOf(name);
      const size_t before = number_;
      Function(function, hash, &body);
      if (number_ != before) rewritten.kernels[hash] = name;
    }
    if (number_ == 0) return rewritten;
    rewritten.sites = number_;
    rewritten.text = std::string(ptx_.substr(0, head)) + "\n" + Variables() + body;
    rewritten.text += ptx_.substr(done_);
    return rewritten;
  }

 private:
  uint32_t LineAt(size_t offset) const {
    const std::string_view before = ptx_.substr(0, offset);
    return static_cast<uint32_t>(1 + std::ranges::count(before, '\n'));
  }

  std::string Variables() const {
    std::string text;
    const bool has_launches = std::ranges::any_of(set_.probes, [](const Probe& probe) {
      return probe.text.find(kLaunchTable) != std::string::npos;
    });
    if (has_launches) {
      text += std::string(".visible .global .align 8 .b8 ") + kLaunchTable + "[" +
              std::to_string(kLaunchWords * sizeof(uint64_t)) + "];\n";
    }
    for (const policy::MapShape& map : set_.maps) {
      text += ".visible .global .align 16 .b8 " + SymbolOf(map) + "[" +
              std::to_string(BytesOf(map)) + "];\n";
    }
    return text;
  }

  const Probe& ProbeAt(Point point) const {
    return *std::ranges::find(set_.probes, point, &Probe::point);
  }

  void CopyTo(size_t offset, std::string* body) {
    if (offset > done_) *body += ptx_.substr(done_, offset - done_);
    done_ = std::max(done_, offset);
    if (body->size() > kMaxRewrittenBytes) {
      throw PtxError(LineAt(done_),
                     "with its probes the module is larger than 64 MiB: name fewer kernels");
    }
  }

  void Function(const softgpu::PtxFunction& function, uint32_t hash, std::string* body) {
    std::vector<Site> sites = sites_.Of(function, wanted_);
    // What exits need is kept from the entry on.
    const bool exits = std::ranges::any_of(sites, [](const Site& site) {
      return site.point == Point::kKernelExit || site.point == Point::kBlockExit;
    });
    if (exits) KeepBegin(function, body);
    for (const Site& site : sites) {
      CopyTo(site.begin, body);
      const std::string after = "$longwire_skip_" + std::to_string(number_);
      if (!site.skip.empty()) *body += site.skip + " bra " + after + ";\n";
      *body += TextOf(site, hash);
      if (!site.skip.empty()) *body += after + ":\n";
    }
  }

  void KeepBegin(const softgpu::PtxFunction& function, std::string* body) {
    bool began = false, cycles = false;
    for (const Probe& probe : set_.probes) {
      began |= probe.reads_began;
      cycles |= probe.reads_began_cycles;
    }
    if (!began && !cycles) return;
    CopyTo(sites_.FirstStatementOf(function), body);
    if (began) *body += ".reg .b64 %longwire_began;\nmov.u64 %longwire_began, %globaltimer;\n";
    if (cycles) {
      *body += ".reg .b64 %longwire_began_cycles;\nmov.u64 %longwire_began_cycles, %clock64;\n";
    }
  }

  std::string TextOf(const Site& site, uint32_t hash) {
    const Probe& probe = ProbeAt(site.point);
    std::string text = probe.text;
    ReplaceAll(&text, kSite, std::to_string(number_++));
    ReplaceAll(&text, kKernel, std::to_string(hash));
    ReplaceAll(&text, kBytes, std::to_string(site.bytes));
    ReplaceAll(&text, kAccess, std::to_string(site.access));
    ReplaceAll(&text, kLine, std::to_string(site.line));
    if (!probe.reads_address) return text;
    // A register or a variable, and an offset.
    const size_t plus = site.address.find_first_of("+-");
    const std::string base = site.address.substr(0, plus);
    const std::string offset =
        plus == std::string::npos ? "0" : site.address.substr(plus + (site.address[plus] == '+'));
    return "{\n.reg .b64 %longwire_address;\nmov.u64 %longwire_address, " + base +
           ";\nadd.s64 %longwire_address, %longwire_address, " + offset + ";\n" + text + "}\n";
  }

  const std::string_view ptx_;
  const ProbeSet& set_;
  const std::string& kernels_;
  Sites sites_;
  std::vector<Point> wanted_;
  size_t number_ = 0;  // of sites
  size_t done_ = 0;    // up to where the text was copied
};

}  // namespace

uint32_t HashOf(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  return hash;
}

std::optional<Rewritten> Rewrite(std::string_view ptx, const ProbeSet& set,
                                 const std::string& kernels, std::string* sentence) {
  try {
    return Rewriter(ptx, set, kernels).Run();
  } catch (const PtxError& error) {
    *sentence = error.what();
    return std::nullopt;
  }
}

}  // namespace longwire::probe
