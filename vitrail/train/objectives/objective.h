// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a training run learns.  The run has the folder, state, resumption, optimiser, time limit, patience, checkpoints,
// metrics and processes; an objective has the data, the model, the loss of a batch, the scores, and its part of the
// report.
#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/nn/module.h"
#include "vitrail/optim/parameter_groups.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/quality.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

class ProcessGroup;
struct Report;
struct ReportInput;

// What an objective is made from.  The references outlive it.
struct ObjectiveContext {
  const Recipe& recipe;
  const ProcessGroup& group;
  int threads = 1;
  std::filesystem::path folder{};                 // the run's
  std::function<void(const std::string&)> log{};  // a line for the user
};

enum class Split { training, validation, test };

// The position of a batch in the run and among the batches that are accumulated into one step.
struct BatchPosition {
  uint64_t number = 0;           // index of the batch in the run: a key of the random numbers of dropout and drop path
  int64_t index = 0, count = 1;  // batch `index` of `count` of the step
  double epochs = 0;             // epochs so far, with fractions
  int64_t skipped = 0;           // images that the run has skipped so far
};

// The result of one batch: of this process, and from Backward over all processes.
struct BatchResult {
  double loss = 0;  // mean over the images; not finite if it is not finite in any process
  int64_t correct = 0, images = 0;
  double weight = 0;      // what the mean loss was divided by: images, or the sum of their class weights
  int64_t skipped = 0;    // images that this process could not read
  std::string problem{};  // where the loss became not finite; empty: unknown
};

// Accumulates the gradients of this process's mean loss.  `local`: its images, weight and correct.  Without images the
// loss may be undefined; other processes may have some.
using Backward = std::function<BatchResult(const Tensor& loss, const BatchResult& local)>;

// An evaluation, and what the report shows of it.
struct Measurement : Evaluation {
  std::any details{};
};

// The result of an objective that computes its weights at once, without steps of an optimiser.
struct Solution {
  int64_t iterations = 0;
  Evaluation training{};                        // on the training images
  std::optional<Evaluation> cross_validated{};  // on the images that each fold left out
  int64_t skipped = 0;                          // images that could not be read
};

// An objective throws Error from its constructor for invalid data and settings, before anything is written.
class Objective {
 public:
  virtual ~Objective() = default;

  // The model: its parameters are trained but for those that the name patterns frozen() match, and are written with
  // config_json(), the contents of config.json.
  virtual nn::Module& model() = 0;
  virtual std::vector<std::string> frozen() const { return {}; }
  virtual std::vector<optim::RateScale> rate_scales() const { return {}; }
  virtual std::string config_json() const = 0;
  // The saved model's tensors by its own names, of the parameters of model() or of their average.  Others are in the
  // checkpoints alone.
  virtual std::vector<nn::NamedTensor> saved(std::vector<nn::NamedTensor> parameters) const { return parameters; }
  // Writes what belongs beside the saved model in its folder.
  virtual void write_beside(const std::filesystem::path& /*folder*/,
                            const std::vector<nn::NamedTensor>& /*parameters*/) const {}

  // The data.  size(): images of a split, 0 if there is none.
  virtual int64_t size(Split split) const = 0;
  virtual std::string name(Split split) const = 0;       // for messages: "5,000 images held out of …"
  virtual bool holds_out() const { return false; }       // whether the validation images are held-out training images
  virtual std::vector<ImageSet> image_sets() const = 0;  // those of the three splits
  virtual std::string preprocessing() const { return {}; }  // how images become inputs, to tell a change
  virtual std::vector<std::string> classes() const { return {}; }
  virtual std::vector<std::string> introduction() const = 0;  // lines about the model and the training images

  // The steps, unless ObjectiveRow::solves.  train_batch() computes this process's part of the next batch and, if it
  // has images, calls `backward`.
  virtual int64_t batches() const { return 0; }  // in an epoch
  virtual void start_epoch(int64_t /*epoch*/, int64_t /*batch*/) {}
  virtual BatchResult train_batch(const BatchPosition&, const Backward&) { return {}; }
  // After the optimiser has changed the weights.  `progress`: the share of the run's steps that are done, in (0, 1].
  virtual void end_step(double /*progress*/) {}
  virtual double waited_seconds() const { return 0; }  // for data, in total
  virtual void end_epoch() {}                          // throws Error if the epoch has shown that training is in vain

  using SolveProgress = std::function<void(Progress::Phase, int64_t done, int64_t total)>;
  // Before the first step.  Sets weights that follow from the training images, equally in all processes, and returns
  // what simpler methods reach on the validation images with the weights that training starts from: scores of the first
  // metric, each with the method's name and title.
  virtual std::vector<Score> begin(const SolveProgress&) { return {}; }

  // Sets the weights, if ObjectiveRow::solves.
  virtual Solution solve(const SolveProgress&) { return {}; }

  // The scores.  `progress(done, total)`: after each batch; it may throw.
  virtual const Metrics& metrics() const = 0;
  virtual Measurement measure(Split split, const std::function<void(int64_t, int64_t)>& progress) = 0;
  // What decides between weights.
  Quality quality(const Evaluation& evaluation) const;
  // Whether the run keeps these weights instead of earlier ones; of equally good ones the later.
  virtual bool replaces(const Evaluation& evaluation, const Quality& best) const {
    return !better(best, quality(evaluation));
  }
  // Whether the run measures the weights that training starts from, and keeps them where no epoch is better.  The run
  // asks after begin().
  // start_from() gets that measurement, before the first step and when a run is resumed.
  virtual bool keeps_start() const { return false; }
  virtual void start_from(const Evaluation& /*start*/) {}
  virtual bool reports_details() const { return false; }  // whether the report needs the details of the kept weights

  // The report.
  virtual std::string subject() const = 0;  // what is trained: "vit_tiny_patch16_224"
  virtual std::string usage() const = 0;    // TrainingResult::usage
  // Adds to the facts, charts, images, classes and summary; without charts of its own, those of the metrics are shown.
  virtual void add_section(const Measurement&, Split, Report&) {}
  virtual std::string model_card(const ReportInput& input) const;
};

// Adds the scores of the start to the summary and, beside those of a measurement of the same images, to the facts.
void add_start(const Evaluation& start, const Measurement& measurement, Split split, Report& report);

// A row of the table of objectives.
struct ObjectiveRow {
  std::string name;  // Recipe::objective
  std::function<std::unique_ptr<Objective>(const ObjectiveContext&)> make;
  std::function<void(Fields&, Recipe&)> describe{};  // its section of the recipe: describe_section()
  // Adds a line for each setting that does not go with the objective.
  std::function<void(const Recipe&, std::vector<std::string>& problems)> check{};
  // Throws Error for settings that are known to destroy the model that training starts from.  Not called with
  // TrainerOptions::force.
  std::function<void(const Recipe&, int processes)> refuse_risks{};
  // The splits train, val and test of a dataset that is no data::Manifest.
  std::function<std::vector<std::string>(const std::filesystem::path&)> splits{};
  // Name patterns of the parameters that are trained beside low-rank parts (Recipe::lora): the layers that are new on a
  // pretrained model.  None: the objective has no LoRA.
  std::vector<std::string> new_layers = {};
  bool several_processes = true;
  bool solves = false;  // by Objective::solve(): without steps, checkpoints and a time limit
};
const ObjectiveRow* find_objective(const std::string& name);  // null if there is none
const ObjectiveRow& objective_of(const Recipe& recipe);       // throws Error if there is none
std::vector<std::string> objective_names();
void add_objective(ObjectiveRow row);  // throws Error for a name that the table has

// Describes the section `name` of a recipe, whose values Recipe::section has.
template <class Section>
void describe_section(const char* name, Fields& fields, Recipe& recipe, void (*describe)(Fields&, Section&)) {
  if (!recipe.section.has_value()) recipe.section = Section{};
  fields.object(name, [&](Fields& inner) { describe(inner, std::any_cast<Section&>(recipe.section)); });
}

// Trains a model as train() does, with this objective instead of that of the recipe.
TrainingResult train(const ObjectiveRow& objective, const Recipe& recipe, const TrainerOptions& options,
                     const TrainerCallbacks& callbacks = {});

}  // namespace vitrail::train
