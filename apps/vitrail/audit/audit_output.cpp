// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/audit/audit_output.h"

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/csv.h"
#include "vitrail/base/text.h"

namespace vitrail::app {
namespace {

std::string label_name(const Audit& audit, int64_t label) { return label < 0 ? "" : audit.class_name(label); }

size_t count_of(const Audit& audit, FindingKind kind) {
  size_t count = 0;
  for (const Finding& finding : audit.findings) count += finding.kind == kind ? 1 : 0;
  return count;
}

void print_text(const Audit& audit, int64_t limit) {
  std::optional<FindingKind> kind;
  int64_t shown = 0;
  for (const Finding& finding : audit.findings) {
    if (kind != finding.kind) {
      const size_t count = count_of(audit, finding.kind);
      print_output("{}{}: {}{}\n", kind ? "\n" : "", text_of(finding.kind).title, count,
                   std::cmp_greater(count, limit) ? fmt::format(", the first {}", limit) : "");
      kind = finding.kind, shown = 0;
    }
    if (shown++ >= limit) continue;
    print_output("  {}\n", escaped(finding.images.size() == 1 ? audit.images[finding.images[0]].path : finding.text));
    if (finding.images.size() == 1) print_output("      {}\n", escaped(finding.text));
    if (finding.kind == FindingKind::classes) continue;
    for (size_t i = 0; i < finding.images.size() && finding.images.size() > 1; ++i)
      print_output("      {}\n", escaped(audit.images[finding.images[i]].path));
  }
  if (audit.findings.empty()) print_output("nothing found\n");
}

nlohmann::ordered_json json_of(const Audit& audit, const Finding& finding) {
  nlohmann::ordered_json images = nlohmann::ordered_json::array();
  for (const size_t i : finding.images) images.push_back(audit.images[i].path);
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (const int64_t label : finding.classes) classes.push_back(audit.class_name(label));
  return {{"kind", text_of(finding.kind).name},
          {"images", images},
          {"classes", classes},
          {"score", finding.score ? nlohmann::ordered_json(*finding.score) : nlohmann::ordered_json()},
          {"text", finding.text}};
}

void print_json_object(const Audit& audit) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const Finding& finding : audit.findings) findings.push_back(json_of(audit, finding));
  print_json({{"images", audit.images.size()},
              {"classes", audit.classes},
              {"cross_validated_top1",
               audit.folds > 0 ? nlohmann::ordered_json(audit.held_out_top1) : nlohmann::ordered_json()},
              {"findings", findings}});
}

void print_csv(const Audit& audit) {
  print_output("kind,finding,path,split,label,score,text\n");
  for (size_t f = 0; f < audit.findings.size(); ++f) {
    const Finding& finding = audit.findings[f];
    for (const size_t i : finding.images) {
      const AuditedImage& image = audit.images[i];
      print_output("{},{},{},{},{},{},{}\n", text_of(finding.kind).name, f, csv_field(image.path),
                   csv_field(image.split), csv_field(label_name(audit, image.label)),
                   finding.score ? fmt::format("{:.6g}", *finding.score) : "", csv_field(finding.text));
    }
  }
}

}  // namespace

void print_audit(const Audit& audit, Format format, int64_t limit) {
  if (format == Format::text) print_text(audit, limit);
  if (format == Format::json) print_json_object(audit);
  if (format == Format::csv) print_csv(audit);
}

void write_scores(const std::string& file, const Audit& audit) {
  AtomicFile out(file);
  out.write("file,label,prediction,split,self_confidence,neighbor_distance,error\n");
  for (const AuditedImage& image : audit.images) {
    out.write(fmt::format("{},{},{},{},{},{},{}\n", csv_field(image.path), csv_field(label_name(audit, image.label)),
                          csv_field(label_name(audit, image.predicted)), csv_field(image.split),
                          image.self_confidence ? fmt::format("{:.9g}", *image.self_confidence) : "",
                          image.error.empty() ? fmt::format("{:.9g}", image.neighbor_distance) : "",
                          csv_field(image.error)));
  }
  out.commit();
}

}  // namespace vitrail::app
