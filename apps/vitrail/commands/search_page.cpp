// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/commands/search_page.h"

#include <fmt/core.h>

#include "apps/vitrail/output/page.h"
#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::app {
namespace {

constexpr size_t kMaxQueries = 100;

std::string figure_of_file(const std::string& path, const std::string& caption) {
  return figure_of([&] { return image::read_image(path); }, caption, path);
}

std::string render_result(const SearchResult& result) {
  std::string html = str("<h3>", train::escape_html(result.query), "</h3>\n<div class=\"misclassified\">\n");
  if (!result.is_text) html += figure_of_file(result.query, "query");
  for (size_t i = 0; i < result.nearest.size(); ++i)
    html += figure_of_file(result.paths[i], fmt::format("{:.4f}", result.nearest[i].score));
  return html + (result.nearest.empty() ? "</div>\n<p class=\"more\">nothing as similar</p>\n" : "</div>\n");
}

}  // namespace

void write_search_page(const std::string& file, const std::string& index, const std::vector<SearchResult>& results,
                       const std::string& command_line) {
  std::string html = train::page_begin("Search in " + index, kPageStyle);
  for (size_t i = 0; i < results.size() && i < kMaxQueries; ++i) html += render_result(results[i]);
  if (results.size() > kMaxQueries) html += str("<p class=\"more\">and ", results.size() - kMaxQueries, " more</p>\n");
  train::write_text(file, html + page_end(command_line));
}

}  // namespace vitrail::app
