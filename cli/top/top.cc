// longwire top: a server's devices, tenants and sessions, live.
#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <type_traits>

#include "cli/kernels/kernel_lines.h"
#include "cli/operator/operator.h"
#include "cli/text.h"
#include "cli/top/fetcher.h"
#include "cli/top/options.h"
#include "cli/top/pool_lines.h"
#include "cli/top/pool_view.h"
#include "cli/top/screen.h"
#include "cli/top/sections.h"
#include "link/transport/grpc_setup.h"

namespace longwire::cli {
namespace {

using top::Fetcher;
using top::KernelsView;
using top::Picture;
using top::PoolView;
using top::Screen;
using top::View;

constexpr const char* kTopFooter =
    "Keys: arrows select a session and choose the column to sort by, / filters, k kills the "
    "selected "
    "session, d drains the server, c cordons a device, ? explains all, q quits. Killing, draining "
    "and cordoning need an administrator's rights. With --pool, keys scroll, and nothing is "
    "changed: "
    "longwire admin drain HOST, cordon HOST and uncordon HOST do that.\n\n"
    "The exit status is 0, 1 if the server did not answer at first, 2 if this command was called "
    "wrongly.";
constexpr int kLook = 100;  // ms between two looks at the fetcher
constexpr std::chrono::milliseconds kEndPatience{500};

// Names are UTF-8, wherever this runs.
void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

int Fail(const std::string& sentence, int status = 1) {
  std::fprintf(stderr, "longwire top: %s\n", Printable(sentence).c_str());
  return status;
}

Picture PictureOf(const Fetcher::State& state) {
  return top::MakePicture(state.server, state.before.get(), *state.now);
}

int Once(Fetcher& fetcher, const top::Options& options) {
  std::string sentence;
  if (!fetcher.FetchOnce(&sentence)) return Fail(sentence);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
  if (!fetcher.FetchOnce(&sentence)) return Fail(sentence);
  const Picture picture = PictureOf(fetcher.Get());
  const std::string text = options.json ? PictureJson(picture) + "\n" : PictureText(picture);
  std::fputs(text.c_str(), stdout);
  return 0;
}

void Update(const Fetcher::State& state, View* view) {
  if (state.problem.empty() && state.now != nullptr) view->SetPicture(PictureOf(state));
  view->SetProblem(state.problem);
}

void Update(const Fetcher::State& state, PoolView* view) {
  std::string problem = state.problem;
  if (problem.empty() && state.now != nullptr) {
    if (state.now->has_pool()) view->SetPool(state.now->pool());
    if (!state.now->has_pool()) problem = top::NotInPool(state.server);
  }
  view->SetProblem(problem);
}

void Update(const Fetcher::State& state, KernelsView* view) {
  if (state.problem.empty() && state.now != nullptr) view->Set(state.now);
  if (!state.problem.empty()) view->SetProblem(state.problem);
}

// Shows the view until its user quits or the terminal is gone.
template <class AnyView>
void Watch(Fetcher& fetcher, Screen& screen) {
  constexpr bool kAsks = std::is_same_v<AnyView, View>;
  AnyView view;
  uint64_t seen = 0;
  [[maybe_unused]] uint64_t answers = 0;
  bool changed = true;
  while (!view.quit()) {
    const Fetcher::State state = fetcher.Get();
    if (state.number != seen) {
      Update(state, &view);
      if constexpr (kAsks) {
        if (state.answers != answers) view.Say(state.said);
        answers = state.answers;
      }
      changed = true;
    }
    seen = state.number;
    if (changed) screen.Draw(view.Page(screen.width(), screen.height()));
    top::Key key{};
    std::string text;
    const Screen::Event event = screen.Wait(kLook, &key, &text);
    if (event == Screen::Event::kGone) return;
    if (event == Screen::Event::kKey) view.Press(key, text);
    if constexpr (kAsks) {
      if (auto request = view.TakeRequest()) fetcher.Ask(std::move(*request));
    }
    changed = event != Screen::Event::kNone;
  }
}

// False with a sentence where the server did not answer, or is not in a pool that is to be shown.
bool FetchFirst(Fetcher& fetcher, bool pool, std::string* sentence) {
  if (!fetcher.FetchOnce(sentence)) return false;
  const Fetcher::State state = fetcher.Get();
  *sentence = top::NotInPool(state.server);
  return !pool || state.now->has_pool();
}

int OncePool(Fetcher& fetcher, const top::Options& options) {
  std::string sentence;
  if (!FetchFirst(fetcher, true, &sentence)) return Fail(sentence);
  const transport::PoolFigures pool = fetcher.Get().now->pool();
  std::fputs((options.json ? top::PoolJson(pool) + "\n" : top::PoolText(pool)).c_str(), stdout);
  return 0;
}

int OnceKernels(Fetcher& fetcher, const top::Options& options) {
  std::string sentence;
  if (!fetcher.FetchOnce(&sentence)) return Fail(sentence);
  const transport::InspectReply& reply = *fetcher.Get().now;
  std::fputs((options.json ? top::KernelsJson(reply) + "\n" : top::KernelsText(reply)).c_str(),
             stdout);
  return 0;
}

int Live(Fetcher& fetcher, const top::Options& options) {
  const bool pool = options.pool;
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) {
    return Fail("this is no terminal; --once prints one picture. See longwire top --help",
                kUsageStatus);
  }
  std::string sentence;
  if (!FetchFirst(fetcher, pool, &sentence)) return Fail(sentence);
  if (!fetcher.Start(&sentence)) return Fail(sentence);
  {
    Screen screen;
    if (!screen.Open(&sentence)) return Fail(sentence);
    if (options.kernels) {
      Watch<KernelsView>(fetcher, screen);
    } else {
      pool ? Watch<PoolView>(fetcher, screen) : Watch<View>(fetcher, screen);
    }
  }
  // A question that has no answer yet is not waited for.
  if (!fetcher.Stop(kEndPatience)) _exit(0);
  return 0;
}

int Top(const top::Options& options) {
  if (options.json && !options.once) RefuseValue("--json is for --once. See longwire top --help");
  if (options.pool && options.kernels) {
    RefuseValue("--pool and --kernels are two pictures; ask for one. See longwire top --help");
  }
  ServerOptions server;
  FindServer(&server);
  UseUtf8();
  transport::PrepareProcess();
  transport::InspectRequest also;
  also.set_pool(options.pool);
  also.set_programs(options.kernels);
  Fetcher fetcher(server, std::chrono::duration<double>(options.interval), also);
  if (!options.once) return Live(fetcher, options);
  if (options.kernels) return OnceKernels(fetcher, options);
  return options.pool ? OncePool(fetcher, options) : Once(fetcher, options);
}

}  // namespace

void AddTop(CommandLine& line) {
  auto options = std::make_shared<top::Options>();
  CLI::App& command = line.Add(nullptr, "top", "a server's devices, tenants and sessions, live",
                               [options] { return Top(*options); });
  top::Describe(command, options.get());
  AddConnection(command, Reach::kNetworkAndLocal);
  command.footer(std::string(kOperatorHelp) + kTopFooter);
}

}  // namespace longwire::cli
