// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/audit/audit_output.h"
#include "apps/vitrail/audit/audited_set.h"
#include "apps/vitrail/audit/near_duplicates.h"
#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/analysis/nearest.h"
#include "vitrail/base/parallel.h"

namespace vitrail::app {
namespace {

struct AuditCommandOptions {
  ModelOptions model;
  AuditedSet set;
  double threshold = analysis::kNearIdentical;
  int64_t next = 20, limit = 20;
  std::string format = "text", scores, report;
  bool force = false;
};

int run_audit(const AuditCommandOptions& options, const GlobalOptions& global) {
  const Model model = load_model(options.model, global);
  Audit audit = read_audited(options.set, model, global);
  const ComputeTeam team(model.session().threads());
  find_all(audit, {.duplicates = options.threshold, .next = options.next});
  print_audit(audit, format_from_name(options.format), options.limit);
  if (!options.scores.empty()) write_scores(options.scores, audit);
  if (!options.report.empty())
    write_audit_page(options.report, audit,
                     {.dataset = options.set.dataset, .command_line = global.command_line, .limit = options.limit});
  return 0;
}

void describe_audit(Fields& fields, AuditCommandOptions& options) {
  fields.number({"threshold", "Cosine similarity of features from which two images are near-identical"},
                options.threshold, {-1, 1});
  fields.integer({"next", "How many unlabelled images to name"}, options.next, 0);
  fields.integer({"limit", "How many findings of each kind the text and the page show"}, options.limit, 1);
  fields.choice({"format", "Output format: text, json (an object) or csv (a row for each image of a finding)"},
                options.format, {"text", "json", "csv"});
}

}  // namespace

void add_audit(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<AuditCommandOptions>();
  CLI::App* command = program.add_subcommand(
      "audit", "Find unreadable, odd and near-identical images and wrong labels in a labelled set");
  command->footer("Example: vitrail audit photos -m MODEL --report audit.html");
  command->add_option("DATASET", options->set.dataset, "A dataset (see eval); all its splits are read")->required();
  options->model.add_to(*command);
  command->add_option("--unlabelled", options->set.unlabelled,
                      "Images and folders without labels; those to label next are named");
  add_field_options(*command, describe_audit, *options);
  command->add_option("--scores", options->scores,
                      "FILE.csv: label, prediction, self-confidence and distance to the nearest images, by image");
  command->add_option("--report", options->report, "FILE.html: a page with the findings and their images");
  add_columns(*command, options->set.sets.columns);
  add_force_to(*command, options->force);
  options->set.images.add_to(*command);
  command->callback([options, &global, &run] {
    std::vector<std::string> inputs = options->model.files();
    inputs.push_back(options->set.dataset);
    inputs.insert(inputs.end(), options->set.unlabelled.begin(), options->set.unlabelled.end());
    check_outputs({{"--scores", options->scores, Kind::predictions}, {"--report", options->report, Kind::page}}, inputs,
                  options->force);
    run = [options, &global] { return run_audit(*options, global); };
  });
}

}  // namespace vitrail::app
