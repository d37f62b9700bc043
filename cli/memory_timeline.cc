#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/memory.h"
#include "cli/pictures/clock_text.h"
#include "cli/pictures/html_text.h"
#include "cli/text.h"

namespace longwire::cli {
namespace {

constexpr double kWidth = 960, kLeft = 90, kAreaHeight = 160, kLane = 14, kGap = 24;
constexpr const char* kColours[] = {"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2",
                                    "#edc948", "#b07aa1", "#9c755f", "#86bcb6", "#d37295"};
constexpr const char* kIdleColour = "#d0d0d0";
constexpr const char* kOthersColour = "#555";
constexpr const char* kFreeColour = "#f7f7f7";
constexpr size_t kLongestName = 130;  // characters of a legend's row that fit
// A row of ticks for each kind of event that came.
constexpr const char* kKinds[] = {"lease", "return", "map",    "unmap",    "remap",
                                  "ask",   "drain",  "unused", "swap-out", "swap-in",
                                  "fill",  "refuse", "clear",  "release",  "end"};

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

// At most `size` bytes, and no part of a character.
std::string Beginning(const std::string& text, size_t size) {
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

std::string Text(double x, double y, const std::string& words, const char* anchor = "start") {
  return "<text x=\"" + Number(x) + "\" y=\"" + Number(y) + "\" text-anchor=\"" + anchor + "\">" +
         HtmlText(words) + "</text>\n";
}

// Draws one device from `top` down.
class Drawing {
 public:
  Drawing(const MemoryHistory& history, double top) : history_(history), top_(top) {
    if (history.samples.empty()) return;
    begin_ = history.samples.front().seconds;
    end_ = std::max(history.samples.back().seconds, begin_ + 0.001);
  }

  std::string Draw() {
    svg_ += Text(0, top_ + 12,
                 history_.title + "  " + DayText(begin_) + ", " + ClockText(begin_, 1) + " to " +
                     ClockText(end_, 1) + " " + ZoneText(begin_));
    top_ += kGap;
    DrawAreas();
    svg_ += Text(kLeft - 6, top_ + 10, BytesText(history_.total), "end");
    svg_ += Text(kLeft - 6, top_ + kAreaHeight, "0", "end");
    bottom_ = top_ + kAreaHeight + kGap;
    DrawClock();
    DrawEvents();
    DrawLegend();
    return svg_;
  }
  double bottom() const { return bottom_; }

 private:
  double X(double seconds) const {
    double part = std::clamp((seconds - begin_) / (end_ - begin_), 0.0, 1.0);
    return kLeft + part * (kWidth - kLeft);
  }
  double Y(uint64_t bytes) const {
    double part =
        static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(history_.total, 1));
    return top_ + kAreaHeight * (1 - std::min(part, 1.0));
  }
  const char* Colour(uint64_t session) const {
    auto place = std::distance(history_.names.begin(), history_.names.find(session));
    return kColours[static_cast<size_t>(place) % std::size(kColours)];
  }

  // Marks of the clock below the areas.
  void DrawClock() {
    const double step = ClockStep(end_ - begin_);
    const double first = std::ceil(begin_ / step) * step;
    const int count = static_cast<int>(std::floor((end_ - first) / step + 1e-6)) + 1;
    for (int i = 0; i < count; ++i) {
      const double at = first + i * step;
      svg_ += "<line class=\"clock\" x1=\"" + Number(X(at)) + "\" x2=\"" + Number(X(at)) +
              "\" y1=\"" + Number(top_) + "\" y2=\"" + Number(top_ + kAreaHeight + 4) +
              "\" stroke=\"#999\" stroke-opacity=\"0.5\"/>\n";
      const bool last = X(at) > kWidth - 30;
      svg_ +=
          Text(last ? kWidth : X(at), bottom_ - 8, ClockText(at, step), last ? "end" : "middle");
    }
  }

  // Session upon session, then what nobody has.
  void DrawAreas() {
    std::vector<uint64_t> below(history_.samples.size(), 0);
    auto area = [&](const char* colour, const std::string& name, auto bytes_of) {
      std::string up, down;
      uint64_t most = 0;
      for (size_t i = 0; i < history_.samples.size(); ++i) {
        const MemoryHistory::Sample& sample = history_.samples[i];
        double next = i + 1 < history_.samples.size() ? history_.samples[i + 1].seconds : end_;
        uint64_t bytes = bytes_of(sample);
        most = std::max(most, bytes);
        // A step: it holds until the next sample.
        for (double x : {X(sample.seconds), X(next)}) {
          up += Number(x) + "," + Number(Y(below[i] + bytes)) + " ";
          down.insert(0, Number(x) + "," + Number(Y(below[i])) + " ");
        }
        below[i] += bytes;
      }
      if (most == 0) return;
      svg_ += "<polygon fill=\"" + std::string(colour) + "\" points=\"" + up + down + "\"><title>" +
              HtmlText(name) + ", at most " + BytesText(most) + "</title></polygon>\n";
    };
    svg_ += "<rect x=\"" + Number(kLeft) + "\" y=\"" + Number(top_) + "\" width=\"" +
            Number(kWidth - kLeft) + "\" height=\"" + Number(kAreaHeight) + "\" fill=\"" +
            kFreeColour + "\" stroke=\"#999\"/>\n";
    for (const auto& [session, name] : history_.names) {
      area(Colour(session), name, [id = session](const MemoryHistory::Sample& sample) {
        auto found = sample.leased.find(id);
        return found == sample.leased.end() ? 0 : found->second;
      });
    }
    area(kIdleColour, "idle, kept", [](const auto& sample) { return sample.idle; });
  }

  void DrawEvents() {
    for (const char* kind : kKinds) {
      bool any = false;
      for (const transport::MemoryEvent& event : history_.events) {
        if (event.kind() != kind) continue;
        any = true;
        const char* colour =
            history_.names.contains(event.session()) ? Colour(event.session()) : kOthersColour;
        svg_ += "<rect x=\"" + Number(X(event.seconds()) - 1) + "\" y=\"" + Number(bottom_) +
                "\" width=\"2\" height=\"10\" fill=\"" + colour + "\"><title>" +
                ClockText(event.seconds(), 0.001) + ": " + kind + " " + BytesText(event.bytes()) +
                (event.session() != 0 ? ", session " + std::to_string(event.session()) : "") +
                "</title></rect>\n";
      }
      if (!any) continue;
      svg_ += Text(kLeft - 6, bottom_ + 9, kind, "end");
      bottom_ += kLane;
    }
  }

  void LegendRow(const char* colour, const std::string& name) {
    svg_ += "<rect x=\"" + Number(kLeft) + "\" y=\"" + Number(bottom_ + 4) +
            "\" width=\"10\" height=\"10\" fill=\"" + colour + "\" stroke=\"#999\"/>\n";
    const bool fits = name.size() <= kLongestName;
    svg_ += Text(kLeft + 16, bottom_ + 13, fits ? name : Beginning(name, kLongestName) + "…");
    bottom_ += kLane;
  }

  // Every colour that is there.
  void DrawLegend() {
    for (const auto& [session, name] : history_.names) LegendRow(Colour(session), name);
    const bool idle = std::ranges::any_of(history_.samples, &MemoryHistory::Sample::idle);
    if (idle) LegendRow(kIdleColour, "idle: of no session, kept for the next one");
    LegendRow(kFreeColour, "not in use, or of sessions that you may not see");
    const bool others = std::ranges::any_of(history_.events, [&](const auto& event) {
      return !history_.names.contains(event.session());
    });
    if (others) LegendRow(kOthersColour, "events of no session, or of one that you may not see");
    bottom_ += kGap;
  }

  const MemoryHistory& history_;
  double top_;
  double bottom_ = 0;
  double begin_ = 0, end_ = 1;
  std::string svg_;
};

}  // namespace

std::string MemoryTimeline(const std::vector<MemoryHistory>& devices, bool html) {
  double top = 10;
  std::string body;
  for (const MemoryHistory& history : devices) {
    Drawing drawing(history, top);
    body += drawing.Draw();
    top = drawing.bottom();
  }
  // As wide as there is room, like the window in which it is opened.
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\" viewBox=\"0 0 " +
                    Number(kWidth + 20) + " " + Number(top) +
                    "\" font-family=\"sans-serif\" font-size=\"11\">\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" +
                    body + "</svg>\n";
  if (!html) return svg;
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
         "name=\"viewport\" content=\"width=device-width\"><title>Device memory</title></head>\n"
         "<body>\n" +
         svg + "</body></html>\n";
}

}  // namespace longwire::cli
