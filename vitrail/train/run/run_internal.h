// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state and the steps of a training run: run.cpp sets it up, saves and resumes it; run_steps.cpp trains an epoch;
// run_evaluation.cpp evaluates and keeps the best weights.  All processes execute the same sequence of collective
// operations.  Decisions that depend on one process (a signal, a clock, an unreadable image) are therefore all-reduced
// first.  Only rank 0 accesses the folder and calls progress callbacks.
#include <memory>
#include <optional>
#include <string>

#include "vitrail/tensor/caching_allocator.h"
#include "vitrail/train/objectives/model_setup_internal.h"
#include "vitrail/train/objectives/training_step_internal.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/process_group_internal.h"
#include "vitrail/train/run/run_events_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/run/throughput_meter_internal.h"
#include "vitrail/train/run/unreadable_images_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

struct StopRequested {};  // thrown to abandon an evaluation when a stop is requested

class Run {
 public:
  Run(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks, int threads);
  TrainingResult run();

 private:
  // run.cpp
  RunData open_checked_data() const;
  const Subset& checked_train_set() const;
  image::EvalTransform set_preprocessing();
  std::unique_ptr<Teacher> make_teacher() const;
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
  // Including previous resumptions, until the evaluation at the end.
  double seconds() const { return end_seconds_.value_or(counters_.seconds + throughput_.seconds()); }

  // run_steps.cpp
  bool train_epoch();
  void count_batch(const BatchResult& batch, int64_t skipped);
  void log_interval(const StepResult& step);
  void report_progress() const;
  bool save_is_due() const;
  bool end_step(const StepResult& step);

  // run_time.cpp
  int64_t epochs_that_fit() const;
  void keep_time_limit();

  // run_evaluation.cpp
  Evaluation evaluate_subset(const Subset& subset, Progress::Phase phase);
  Evaluation evaluate_ema();
  struct Validation {
    Evaluation weights, average;  // average: without images if there is none
  };
  Validation validate(EpochResult& result);
  void finish_epoch();
  bool out_of_patience() const;
  void keep_best(int64_t epoch, const Candidate& candidate);
  void load_best();
  void final_evaluation();
  void update_report(const Evaluation& evaluation, const Subset& subset, bool finished);

  CachingAllocatorScope memory_;  // recycles tensor memory from step to step
  ProcessGroup group_;
  Recipe recipe_;
  const TrainerCallbacks& callbacks_;
  int threads_;
  double time_limit_;                     // in seconds; 0: none
  std::unique_ptr<RunFolder> folder_;     // null except on rank 0
  std::optional<CheckpointState> state_;  // the resumed checkpoint; restore() releases its tensors
  RunData data_;
  std::vector<ImageSet> image_sets_;  // for the checkpoint; empty except on rank 0
  PreparedModel prepared_;
  image::EvalTransform transform_;
  data::Loader loader_;
  int64_t batches_, steps_;  // per epoch: batches, optimiser steps
  TrainingStep training_step_;
  Position position_;
  Counters counters_;
  std::optional<MetricsLog> metrics_log_;  // empty except on rank 0
  std::optional<ReportImages> report_images_;
  std::vector<std::pair<std::string, std::string>> environment_;  // for the report
  ThroughputMeter throughput_;
  std::optional<double> end_seconds_;       // set once the run has ended: all its files and its result have the same
  Clock::time_point saved_ = Clock::now();  // time of the last checkpoint
  int64_t saved_step_ = 0;                  // optimiser step of the last checkpoint
  UnreadableImages unreadable_;             // that this process met
  int64_t skipped_locally_ = 0;             // images that this process has skipped in the current step
};

}  // namespace vitrail::train
