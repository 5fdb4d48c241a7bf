#include "base/svg.h"

#include <fmt/format.h>

namespace echelon {

std::string svg_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) out += c;  // XML has no other control characters
    }
  }
  return out;
}

std::string svg_begin(int width, int height, std::string_view title, double left) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\">\n"
      "<title>{2}</title>\n"
      "<style>text{{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#57606a}}"
      ".t{{font-size:15px;font-weight:600;fill:#24292f}}.l{{fill:#24292f}}"
      ".g{{stroke:#8c959f;stroke-opacity:.25;fill:none}}.a{{stroke:#8c959f;fill:none}}.b{{fill:#fff}}"
      "@media(prefers-color-scheme:dark){{text{{fill:#9198a1}}.t,.l{{fill:#e6edf3}}.b{{fill:#0d1117}}}}</style>\n"
      "<rect class=\"b\" width=\"{0}\" height=\"{1}\" rx=\"6\"/>\n",
      width, height, svg_escaped(title.empty() ? "curves" : title));
  if (!title.empty())
    svg += fmt::format("<text class=\"t\" x=\"{:.1f}\" y=\"28\">{}</text>\n", left, svg_escaped(title));
  return svg;
}

}  // namespace echelon
