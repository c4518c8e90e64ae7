// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "apps/vitrail/audit/audit_output.h"
#include "apps/vitrail/output/page.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::app {
namespace {

constexpr size_t kShownOfGroup = 12;  // images

std::string render_image(const Audit& audit, size_t index, const std::string& text) {
  const AuditedImage& image = audit.images[index];
  const std::string label = image.label < 0 ? image.split : audit.class_name(image.label);
  return figure_of(image.error.empty() ? image.read : nullptr, text.empty() ? label : text, image.path);
}

std::string render_finding(const Audit& audit, const Finding& finding) {
  if (finding.images.size() == 1) return render_image(audit, finding.images[0], finding.text);
  std::string html = str("<h3>", train::escape_html(finding.text), "</h3>\n<div class=\"misclassified\">\n");
  for (size_t i = 0; i < finding.images.size() && i < kShownOfGroup; ++i)
    html += render_image(audit, finding.images[i], "");
  html += "</div>\n";
  if (finding.images.size() > kShownOfGroup)
    html += str("<p class=\"more\">and ", finding.images.size() - kShownOfGroup, " more</p>\n");
  return html;
}

std::string render_section(const Audit& audit, FindingKind kind, int64_t limit) {
  std::vector<const Finding*> findings;
  for (const Finding& finding : audit.findings) {
    if (finding.kind == kind) findings.push_back(&finding);
  }
  const bool groups = kind == FindingKind::duplicates || kind == FindingKind::leak || kind == FindingKind::classes;
  std::string html = str("<h2>", text_of(kind).title, ": ", findings.size(), "</h2>\n<p class=\"sub\">",
                         text_of(kind).help, "</p>\n", groups ? "" : "<div class=\"misclassified\">\n");
  for (size_t i = 0; i < findings.size() && std::cmp_less(i, limit); ++i) html += render_finding(audit, *findings[i]);
  if (!groups) html += "</div>\n";
  if (std::cmp_greater(findings.size(), limit))
    html += str("<p class=\"more\">and ", findings.size() - static_cast<size_t>(limit), " more</p>\n");
  return html;
}

}  // namespace

void write_audit_page(const std::string& file, const Audit& audit, const AuditPage& page) {
  std::map<FindingKind, size_t> counts;
  for (const Finding& finding : audit.findings) ++counts[finding.kind];
  const auto fact = [](const std::string& value, const std::string& name) {
    return str("<div class=\"fact\"><b>", value, "</b><span>", train::escape_html(name), "</span></div>\n");
  };
  std::string html = train::page_begin("Audit of " + page.dataset, kPageStyle);
  html += str("<p class=\"sub\">", counted(audit.images.size(), "image"), ", ", audit.classes.size(),
              " classes</p>\n<div class=\"facts\">\n");
  if (audit.folds > 0)
    html += fact(train::percent(audit.held_out_top1), str("top-1 of ", audit.folds, "-fold cross-validation"));
  for (const auto& [kind, count] : counts) html += fact(std::to_string(count), text_of(kind).title);
  html += "</div>\n";
  for (const auto& [kind, count] : counts) html += render_section(audit, kind, page.limit);
  train::write_text(file, html + page_end(page.command_line));
}

}  // namespace vitrail::app
