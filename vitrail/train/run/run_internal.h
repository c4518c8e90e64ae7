// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state and the steps of a training run: run.cpp sets it up, saves and resumes it; run_steps.cpp trains an epoch;
// run_evaluation.cpp evaluates and keeps the best weights; run_solution.cpp is the run without steps;
// run_retraining.cpp trains on all images.  All processes
// execute the same sequence of collective operations.  Decisions that depend on one process (a signal, a clock, an
// unreadable image) are therefore all-reduced first.  Only rank 0 accesses the folder and calls progress callbacks.
#include <memory>
#include <optional>
#include <string>

#include "vitrail/tensor/caching_allocator.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/process_group_internal.h"
#include "vitrail/train/run/run_events_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/run/throughput_meter_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

struct StopRequested {};  // thrown to abandon an evaluation when a stop is requested

class Run {
 public:
  Run(const ObjectiveRow& objective, const Recipe& recipe, const TrainerOptions& options,
      const TrainerCallbacks& callbacks, int threads);
  TrainingResult run();

 private:
  // run.cpp
  std::optional<CheckpointState> find_state(const ObjectiveRow& objective, const TrainerOptions& options) const;
  void begin_files();
  void log_setup() const;
  void log_resumption() const;
  bool goes_on() const;  // whether epochs follow
  void restore();
  void restore_from_checkpoint();
  void save();
  Counters current_counters() const;
  TrainingResult result(bool stopped) const;
  void log(const std::string& message) const;
  bool stop_requested() const { return group_.any(callbacks_.stop && callbacks_.stop()); }
  bool validates() const { return objective_->size(Split::validation) > 0; }
  // Including previous resumptions, until the evaluation at the end.
  double seconds() const { return end_seconds_.value_or(counters_.seconds + throughput_.seconds()); }

  // run_steps.cpp
  bool train_epoch();
  void count_batch(const BatchResult& batch);
  void log_interval(const StepResult& step);
  void report_progress() const;
  bool save_is_due() const;
  bool end_step(const StepResult& step);
  std::vector<Score> training_scores(const RunningSums& sums) const;

  // run_solution.cpp
  Objective::SolveProgress solve_progress();
  void begin();
  void measure_start();
  TrainingResult solve();

  // run_retraining.cpp
  bool retrains() const { return recipe_.data.retrain && objective_->holds_out(); }
  std::filesystem::path retraining_folder() const { return options_.folder / "retrain"; }
  void remove_retraining() const;
  Recipe recipe_of_all_images() const;
  void retrain();
  void keep_start();
  void keep_retrained();

  // run_time.cpp
  double epoch_seconds() const;
  double end_seconds() const;
  double retraining_share() const;
  int64_t epochs_that_fit() const;
  bool has_time_to_retrain() const;
  void keep_time_limit();

  // run_evaluation.cpp
  Measurement measure(Split split);
  Measurement measure_average();
  void finish_epoch();
  bool out_of_patience() const;
  void write_model(const char* folder, const std::vector<nn::NamedTensor>& weights) const;
  void keep_best(int64_t epoch, const Candidate& candidate);
  void keep_for_page(int64_t epoch) const;
  void load(const std::filesystem::path& weights);
  void final_evaluation();
  void update_report(const Measurement& measurement, Split split, bool finished);
  int64_t epochs() const { return solves_ ? 1 : recipe_.epochs; }

  CachingAllocatorScope memory_;  // recycles tensor memory from step to step
  const ObjectiveRow& row_;
  const TrainerOptions& options_;
  ProcessGroup group_;
  Recipe recipe_;
  const TrainerCallbacks& callbacks_;
  int threads_;
  double time_limit_;                     // in seconds; 0: none
  bool solves_;                           // ObjectiveRow::solves
  std::unique_ptr<RunFolder> folder_;     // null except on rank 0
  std::optional<CheckpointState> state_;  // the resumed checkpoint; restore() releases its tensors
  std::unique_ptr<Objective> objective_;
  std::vector<ImageSet> image_sets_;                              // for the checkpoint; empty except on rank 0
  int64_t batches_, steps_;                                       // per epoch: batches, optimiser steps
  std::vector<std::pair<std::string, std::string>> environment_;  // for the report
  std::unique_ptr<WeightUpdate> update_;                          // null if the objective solves
  Position position_;
  Counters counters_;
  std::optional<MetricsLog> metrics_log_;  // empty except on rank 0
  ThroughputMeter throughput_;
  std::optional<double> end_seconds_;       // set once the run has ended: all its files and its result have the same
  Clock::time_point saved_ = Clock::now();  // time of the last checkpoint
  int64_t saved_step_ = 0;                  // optimiser step of the last checkpoint
  int64_t skipped_locally_ = 0;             // images that this process has skipped in the current step
};

}  // namespace vitrail::train
