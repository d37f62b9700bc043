#include "cli/bench/page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "cli/pictures/html_text.h"

namespace longwire::cli {
namespace {

constexpr double kWidth = 900, kLeft = 250, kRight = 150, kRow = 22, kHead = 26;
constexpr double kLeastDecades = 1;  // to either side of 1

constexpr const char* kStyle =
    ":root{color-scheme:light dark;--back:#fff;--text:#1b1d20;--soft:#565b63;--line:#d7d9dd;"
    "--less:#2c6fae;--more:#b45309}"
    "@media(prefers-color-scheme:dark){:root{--back:#14161a;--text:#e8eaed;--soft:#aab0b9;"
    "--line:#363b44;--less:#7cb7f5;--more:#f0b866}}"
    "body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;"
    "background:var(--back);color:var(--text)}"
    "h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}p{color:var(--soft);margin:.3rem 0}"
    "svg{width:100%;height:auto;font-size:12px}svg text{fill:var(--text)}"
    "svg .soft{fill:var(--soft)}svg line{stroke:var(--line)}svg .one{stroke:var(--text)}"
    ".less{fill:var(--less)}.more{fill:var(--more)}"
    "table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}"
    "td,th{text-align:right;padding:.15rem .7rem .15rem 0;border-bottom:1px solid var(--line)}"
    "td:first-child,th:first-child{text-align:left}summary{cursor:pointer}"
    ".scroll{overflow-x:auto}";

std::string Formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string Number(double value) { return Formatted("%.1f", value); }

// Three digits that mean something.
std::string Figure(const std::optional<double>& value) {
  if (!value) return "–";
  return Formatted(*value >= 100 ? "%.0f" : *value >= 10 ? "%.1f" : "%.2f", *value);
}

std::string Text(double x, double y, const std::string& words, const char* anchor,
                 const char* kind = "") {
  return "<text x=\"" + Number(x) + "\" y=\"" + Number(y) + "\" text-anchor=\"" + anchor +
         "\" class=\"" + kind + "\">" + HtmlText(words) + "</text>\n";
}

std::string Line(double x, double top, double bottom, const char* kind) {
  return "<line class=\"" + std::string(kind) + "\" x1=\"" + Number(x) + "\" x2=\"" + Number(x) +
         "\" y1=\"" + Number(top) + "\" y2=\"" + Number(bottom) + "\"/>\n";
}

// Bars from 1, which is the native time, on a scale of powers of ten.
class Picture {
 public:
  explicit Picture(const BenchGroup& group) : group_(group) {
    for (const BenchRow& row : group.rows) {
      if (auto times = TimesAsLong(row)) {
        decades_ = std::max(decades_, std::ceil(std::abs(std::log10(*times)) - 1e-9));
      }
    }
  }

  std::string Draw() const {
    const double bottom = kHead + kRow * static_cast<double>(group_.rows.size());
    std::string svg = "<svg role=\"img\" viewBox=\"0 0 " + Number(kWidth) + " " +
                      Number(bottom + 8) + "\"><title>" + HtmlText(group_.title) +
                      ": times as long through Longwire as natively</title>\n";
    for (int power = static_cast<int>(-decades_); power <= decades_; ++power) {
      const double x = X(std::pow(10, power));
      svg += Line(x, kHead - 6, bottom, power == 0 ? "one" : "");
      const std::string times = Formatted("%g", std::pow(10, power)) + "×";
      svg += Text(x, 14, power == 0 ? "native" : times, "middle", "soft");
    }
    double y = kHead;
    for (const BenchRow& row : group_.rows) {
      svg += Row(row, y);
      y += kRow;
    }
    return svg + "</svg>\n";
  }

 private:
  double X(double times) const {
    const double half = (kWidth - kLeft - kRight) / 2;
    return kLeft + half * (1 + std::log10(times) / decades_);
  }

  std::string Row(const BenchRow& row, double y) const {
    std::string svg = Text(kLeft - 10, y + 14, row.name, "end");
    const auto times = TimesAsLong(row);
    if (times) {
      const double from = std::min(X(*times), X(1)), to = std::max(X(*times), X(1));
      svg += "<rect class=\"" + std::string(*times <= 1 ? "less" : "more") + "\" x=\"" +
             Number(from) + "\" y=\"" + Number(y + 3) + "\" width=\"" +
             Number(std::max(to - from, 1.0)) + "\" height=\"" + Number(kRow - 8) + "\"/>\n";
    }
    const std::string figures = Figure(row.native) + " → " + Figure(row.remote) + " " + row.unit;
    return svg + Text(kWidth, y + 14, figures, "end", "soft");
  }

  const BenchGroup& group_;
  double decades_ = kLeastDecades;
};

std::string Table(const BenchGroup& group) {
  std::string rows;
  for (const BenchRow& row : group.rows) {
    const auto times = TimesAsLong(row);
    rows += "<tr><th scope=\"row\">" + HtmlText(row.name) + "</th>";
    for (const auto& cell : {Figure(row.native), Figure(row.native_worst), Figure(row.remote),
                             Figure(row.remote_worst), HtmlText(row.unit),
                             times ? Figure(times) + "×" : std::string("–")}) {
      rows += "<td>" + cell + "</td>";
    }
    rows += "</tr>\n";
  }
  return "<details><summary>The figures of " + HtmlText(group.title) +
         "</summary><div class=\"scroll\"><table><thead><tr><th scope=\"col\">figure</th>"
         "<th scope=\"col\">native</th><th scope=\"col\">worst</th><th scope=\"col\">Longwire</th>"
         "<th scope=\"col\">worst</th><th scope=\"col\">unit</th>"
         "<th scope=\"col\">times as long</th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div></details>\n";
}

// Line by line: no line's end may be lost.
std::string Raw(const BenchGroup& group) {
  std::string text;
  std::istringstream lines(group.raw);
  for (std::string line; std::getline(lines, line);) text += HtmlText(line) + "\n";
  return "<details><summary>The output of " + HtmlText(group.title) +
         "</summary><div class=\"scroll\"><pre>" + text + "</pre></div></details>\n";
}

}  // namespace

std::optional<double> TimesAsLong(const BenchRow& row) {
  if (!row.native || !row.remote || *row.native <= 0 || *row.remote <= 0) return std::nullopt;
  return row.unit.ends_with("/s") ? *row.native / *row.remote : *row.remote / *row.native;
}

std::string BenchPage(const std::string& title, const std::vector<BenchGroup>& groups) {
  std::string body;
  for (const BenchGroup& group : groups) {
    body += "<section><h2>" + HtmlText(group.title) + "</h2>\n";
    for (const std::string& fact : group.facts) body += "<p>" + HtmlText(fact) + "</p>\n";
    if (!group.rows.empty()) body += Picture(group).Draw() + Table(group);
    if (!group.raw.empty()) body += Raw(group);
    body += "</section>\n";
  }
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         HtmlText(title) + "</title>\n<style>" + kStyle + "</style></head>\n<body><main><h1>" +
         HtmlText(title) +
         "</h1>\n<p>A bar shows how many times as long something takes through Longwire as "
         "natively: to the left it is quicker, to the right slower. For rates, such as GB/s, it "
         "is the time for the same bytes. Medians.</p>\n" +
         body + "</main></body></html>\n";
}

}  // namespace longwire::cli
