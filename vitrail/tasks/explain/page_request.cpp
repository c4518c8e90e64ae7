// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/explain/page_request_internal.h"

namespace vitrail::tasks {
namespace {

const explain::LearningPage& page_of(const Item& item) {
  return std::any_cast<const explain::LearningPage&>(item.value);
}

}  // namespace

void PageRequest::compute(Item& item, const ImageEncoding* /*encoding*/, const ProgressCallback& progress) const {
  item.value = page(item, progress);
}

std::string PageRequest::json(const Item& item) const {
  const explain::LearningPage& page = page_of(item);
  nlohmann::ordered_json left_out = nlohmann::ordered_json::array();
  for (const auto& [what, kept] : page.left_out) left_out.push_back({{"what", what}, {"kept", kept}});
  return pipeline::json_line({{"path", item.name},
                              {"bytes", page.html.size()},
                              {"left_out", left_out},
                              {"claims", nlohmann::ordered_json::parse(page.claims)}});
}

std::vector<uint8_t> PageRequest::file(const Item& item, const std::string& /*kind*/) const {
  const std::string& html = page_of(item).html;
  return {html.begin(), html.end()};
}

Task page_task(Task row) {
  row.files = {{.name = "html",
                .help = "Folder for NAME.html, the page that explains the forward pass",
                .start = "<!doctype html>",
                .media_type = "text/html; charset=utf-8"}};
  return row;
}

}  // namespace vitrail::tasks
