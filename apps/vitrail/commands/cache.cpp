// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/progress.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/hub/cache.h"
#include "vitrail/hub/hub.h"

namespace vitrail::app {
namespace {

struct CacheCommandOptions {
  std::string action;
  std::vector<std::string> models;
  bool remove = false, dry_run = false;
};

// A model in the cache, and the revision that was asked for; empty: none.
struct Chosen {
  hub::CachedModel model;
  std::string revision;
};

std::vector<Chosen> chosen_models(const std::vector<std::string>& names) {
  std::vector<hub::CachedModel> cached = hub::cached_models();
  std::vector<Chosen> chosen;
  if (names.empty()) {
    for (hub::CachedModel& model : cached) chosen.push_back({std::move(model), ""});
    return chosen;
  }
  for (const std::string& text : names) {
    const std::string repository = text.substr(0, text.find('@'));
    const auto found = std::ranges::find(cached, repository, &hub::CachedModel::repository);
    if (found == cached.end()) {
      throw Error(text, "a model in " + hub::cache_folder().string(), "none; vitrail cache ls lists them");
    }
    chosen.push_back({*found, text.size() == repository.size() ? "" : text.substr(repository.size() + 1)});
  }
  return chosen;
}

int list(const CacheCommandOptions& options) {
  print_output("{:44s} {:>10s} {:>6s}  {:12s} {}\n", "model", "size", "files", "commit", "revisions");
  for (const Chosen& chosen : chosen_models(options.models)) {
    for (const hub::CachedRevision& revision : chosen.model.revisions) {
      print_output("{:44s} {:>10s} {:>6d}  {:12s} {}\n", escaped(chosen.model.repository),
                   byte_count_text(revision.bytes), revision.files, escaped(revision.commit.substr(0, 12)),
                   escaped(join(revision.refs)));
    }
    if (chosen.model.partial_bytes > 0) {
      print_output("{:44s} {:>10s}         interrupted download\n", escaped(chosen.model.repository),
                   byte_count_text(chosen.model.partial_bytes));
    }
  }
  return 0;
}

int verify(const CacheCommandOptions& options, const GlobalOptions& global) {
  const std::vector<Chosen> chosen = chosen_models(options.models);
  int64_t total = 0;
  size_t damaged = 0, deleted = 0;
  for (const Chosen& each : chosen) total += each.model.bytes;
  ByteProgress progress("verify", global.quiet);
  int64_t done = 0;
  for (const Chosen& each : chosen) {
    const auto files = hub::verify(each.model, [&](int64_t bytes) { progress.update(done += bytes, total); });
    for (const hub::DamagedFile& file : files) {
      const bool removed = options.remove && hub::remove_damaged(each.model, file);
      print_error(file.path.string() + ": " + file.reason +
                  (options.remove && !removed ? "; it is behind a link, and stays" : ""));
      deleted += removed ? 1 : 0;
    }
    damaged += files.size();
  }
  const std::string kept = deleted == damaged ? "" : fmt::format("{} ", deleted);
  print_output("{} models, {}: {} damaged files{}\n", chosen.size(), byte_count_text(total), damaged,
               deleted > 0 ? ", " + kept + "deleted: vitrail pull gets them again" : "");
  return damaged == 0 ? 0 : 1;
}

int remove(const CacheCommandOptions& options) {
  int64_t bytes = 0;
  for (const Chosen& chosen : chosen_models(options.models)) {
    bytes += options.action == "rm" ? hub::remove(chosen.model, chosen.revision, options.dry_run)
                                    : hub::prune(chosen.model, options.dry_run);
  }
  print_output("{} {}\n", byte_count_text(bytes), options.dry_run ? "would become free" : "are free now");
  return 0;
}

int run_action(const CacheCommandOptions& options, const GlobalOptions& global) {
  if (options.remove && options.action != "verify")
    throw CLI::ValidationError("--remove", "belongs to vitrail cache verify");
  if (options.dry_run && options.action != "rm" && options.action != "prune")
    throw CLI::ValidationError("--dry-run", "belongs to vitrail cache rm and prune");
  if (options.action == "ls") return list(options);
  if (options.action == "verify") return verify(options, global);
  if (options.action == "rm" && options.models.empty())
    throw CLI::ValidationError("model", "vitrail cache rm needs the models to delete");
  return remove(options);
}

}  // namespace

void add_cache(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<CacheCommandOptions>();
  CLI::App* command = program.add_subcommand("cache", "List, verify and delete downloaded models");
  command->footer(
      "Example: vitrail cache ls\n         vitrail cache verify timm/vit_tiny\n         vitrail cache rm "
      "timm/vit_tiny@main");
  command
      ->add_option("action", options->action,
                   "ls: list; verify: compare contents with their digests; rm: delete models or revisions; prune: "
                   "delete what no branch or tag names, and interrupted downloads")
      ->required()
      ->check(CLI::IsMember({"ls", "verify", "rm", "prune"}));
  command->add_option("model", options->models, "Models: organisation/name[@revision] (default: all)");
  command->add_flag("--remove", options->remove, "verify: delete damaged files");
  command->add_flag("--dry-run", options->dry_run, "rm, prune: only say what would become free");
  command->callback([options, &global, &run] { run = [options, &global] { return run_action(*options, global); }; });
}

}  // namespace vitrail::app
