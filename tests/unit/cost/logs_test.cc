// SPDX-License-Identifier: Apache-2.0
// The readers of logs. The fixtures are written here, from the formats' facts.
#include "cost/logs.h"

#include <criterion/criterion.h>

#include "synthetic_log.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

std::vector<MeasuredRun> runs_of(const std::string& text, const ToldOfLog& told = {}) {
  Logs logs;
  const Status added = logs.add(text, "log", told);
  cr_assert(added, "%s", added.error().text.c_str());
  return logs.runs();
}

MeasuredRun run_of(const std::string& text, const ToldOfLog& told = {}) {
  const auto runs = runs_of(text, told);
  cr_assert_eq(runs.size(), 1);
  return runs[0];
}

void expect_error(const std::string& text, const std::string& expected) {
  Logs logs;
  const Status added = logs.add(text, "log");
  cr_expect(!added && added.error().text == expected, "%s",
            added ? "none" : added.error().text.c_str());
}

Seconds us(double value) { return microseconds(value); }
void expect_time(const Outcome& of, double microseconds) {
  cr_expect_float_eq(of.time.count() * 1e6, microseconds, 1e-6);
}

std::string message(const std::string& text) {
  return "node0:1000:1017 [0] NCCL INFO " + text + "\n";
}
std::string tuned(uint64_t bytes, const std::string& algorithm, const std::string& protocol) {
  return message(fmt::format("AllReduce: {} Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{0..7}}",
                             bytes, algorithm, protocol));
}

// Before June 2025: without the program's name, or anybody else's.
std::string old_log(std::string_view columns, const std::string& row) {
  return "# nThread 1 nGpus 4 minBytes 64 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 "
         "validation: 1 \n#\n# Using devices\n" +
         std::string(
             "#   Rank  0 Pid  14926 on v100-gpu-1 device  0 [0x00] Tesla V100\n"
             "#   Rank  1 Pid  14926 on v100-gpu-1 device  1 [0x01] Tesla V100\n"
             "#   Rank  2 Pid  14926 on v100-gpu-1 device  2 [0x02] Tesla V100\n"
             "#   Rank  3 Pid  14926 on v100-gpu-1 device  3 [0x03] Tesla V100\n") +
         fmt::format("#\n#  {}\n", columns) + row +
         "\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5 \n#\n";
}
constexpr std::string_view kOldReduce =
    "size count type redop root time algbw busbw error time algbw busbw error";
constexpr std::string_view kOldGather =
    "size count type time algbw busbw error time algbw busbw error";

const std::string kJson = R"({"version":3,"start_time":"2026-11-30 12:00:00",
 "args":["build\/all_gather_perf","-b","8"],
 "env":["HOME=\/root","NCCL_ALGO=Ring","NCCL_PROTO=LL,Simple"],"nccl_version":22809,
 "config":{"nthreads":1,"ngpus":2,"devices":[
  {"rank":0,"group":0,"pid":11,"hostname":"a","device":0},
  {"rank":2,"group":0,"pid":12,"hostname":"b","device":0}]},
 "results":[
  {"size":0,"count":0,"out_of_place":{"time":5.0,"nwrong":0.0},"in_place":null},
  {"size":1024,"count":64,"type":"float","redop":"none","root":"    -1",
   "out_of_place":{"time":12.5,"alg_bw":0.08,"bus_bw":0.06,"nwrong":0.000000},
   "in_place":{"time":11.5,"alg_bw":0.08,"bus_bw":0.06,"nwrong":3.000000}}],
 "out_of_bounds":{"count":3,"okay":"false"},"average_bus_bandwidth":{"bandwidth":0.06,"okay":"unchecked"}})";

std::string outcome(int rank, int launch, int sequence, const std::string& time,
                    const std::string& communicator = "0xabc") {
  return fmt::format(
      R"({{"schema":1,"communicator":"{}","name":"tp","rank":{},"ranks":2,"nodes":1,"class":"tp",)"
      R"("at_us":17,"launch":{},"sequence":{},"collective":"all_reduce","count":256,)"
      R"("datatype":"float32","bytes":1024,"algorithm":"ring","protocol":"ll","channels":2,)"
      R"("time_us":{}}})"
      "\n",
      communicator, rank, launch, sequence, time);
}
// Of both ranks.
std::string outcomes(int launch, int sequence, const std::string& time,
                     const std::string& communicator = "0xabc") {
  return outcome(0, launch, sequence, time, communicator) +
         outcome(1, launch, sequence, time, communicator);
}

std::string with(std::string text, const std::string& was, const std::string& is) {
  cr_assert_neq(text.find(was), std::string::npos, "%s", was.c_str());
  return text.replace(text.find(was), was.size(), is);
}

}  // namespace

Test(logs, text_tells_the_job_and_both_times_of_a_size) {
  const auto run = run_of(log_of({.hosts = 2, .gpus = 4, .least = 1024, .most = 2048},
                                 [](uint64_t bytes) { return us(bytes == 1024 ? 10.5 : 11); }));
  cr_expect(run.collective == Collective::all_reduce);
  cr_expect(run.version == (NcclVersion{2, 28, 9}));
  cr_expect(run.ranks == 8 && run.hosts == 2 && run.unfit.empty());
  cr_expect(run.gpus_per_process == 1 && run.ended && run.limits.text().empty());
  cr_assert_eq(run.outcomes.size(), 4);
  cr_expect(run.outcomes[1].in_place && !run.outcomes[2].in_place);
  cr_expect(run.outcomes[2].bytes == 2048 && run.outcomes[0].wrong == 0);
  expect_time(run.outcomes[0], 10.5);
  expect_time(run.outcomes[3], 11);
  cr_expect_eq(run.outcomes[2].line, 19);
}

Test(logs, nccl_tells_what_was_set_and_what_ran) {
  const auto run = run_of(
      log_of({.environment =
                  message("NCCL_PROTO set by environment to LL,Simple") +
                  message("NCCL_ALGO set by environment to ^Tree") +
                  message("NCCL_NVLS_ENABLE set by environment to 0.") +
                  message("comm 0x55 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0") +
                  tuned(16, "RING", "LL")},
             [](uint64_t) { return us(9); }));
  cr_expect_str_eq(run.limits.text().c_str(),
                   "NCCL_PROTO=LL,Simple NCCL_ALGO=^Tree NCCL_NVLS_ENABLE=0");
  cr_expect_eq(run.nodes, 1);
  const auto allows = [&](Algorithm algorithm, Protocol protocol) {
    return run.limits.allows(Collective::all_reduce, {algorithm, protocol});
  };
  cr_expect(allows(Algorithm::ring, Protocol::ll) && !allows(Algorithm::ring, Protocol::ll128));
  cr_expect(!allows(Algorithm::tree, Protocol::ll) && !allows(Algorithm::nvls, Protocol::simple));
  cr_expect(!run.outcomes[0].ran &&
            run.outcomes[2].ran == (NcclPair{Algorithm::ring, Protocol::ll}));
}

// NCCL's lines come between the parts of a row, glued to them.
Test(logs, rows_that_nccls_log_broke_are_put_together) {
  const SyntheticLog of{.least = 64, .most = 64};
  const std::string begin = row_begin(64), half = row_half(64, us(7.25));
  const std::string text = header(of) + begin + tuned(64, "TREE", "LL") + message("another") +
                           half + tuned(64, "TREE", "LL128") + row_half(64, us(8)) + "\n" +
                           footer();
  const auto run = run_of(text);
  cr_assert_eq(run.outcomes.size(), 2);
  expect_time(run.outcomes[0], 7.25);
  expect_time(run.outcomes[1], 8);
  cr_expect(run.outcomes[0].ran == (NcclPair{Algorithm::tree, Protocol::ll128}));

  const std::string warned = header(of) + begin +
                             "\nnode0:1000:1017 [0] misc/x.cc:63 NCCL WARN something\n" + half +
                             row_half(64, us(8)) + "\n" + footer();
  cr_expect_eq(run_of(warned).outcomes.size(), 2);
  const std::string stamped = header(of) + begin + "[2026-11-30 12:00:00] " + message("x") + half +
                              row_half(64, us(8)) + "\n" + footer();
  cr_expect_eq(run_of(stamped).outcomes.size(), 2);
}

Test(logs, launchers_marks_are_taken_off_and_ranks_kept_apart) {
  const std::string plain = log_of({.least = 8, .most = 1024}, [](uint64_t) { return us(5); });
  for (const std::string mark :
       {"[1,0]<stdout>:", "[prterun-node0-9@1,0]<stdout>: ", "0: ", "[0] "}) {
    std::string text;
    for (size_t at = 0; at < plain.size();) {
      const size_t end = plain.find('\n', at) + 1;
      text += mark + plain.substr(at, end - at);
      text += "[1,3]<stdout>:node0:1003:1020 [3] NCCL INFO NCCL_ALGO set by environment to Ring\n";
      at = end;
    }
    const auto run = run_of(text);
    cr_expect(run.outcomes.size() == 16 && run.ranks == 8 && run.ended, "%s", mark.c_str());
    cr_expect_str_eq(run.limits.text().c_str(), "NCCL_ALGO=Ring");
  }
}

Test(logs, several_runs_in_a_log_are_told_apart) {
  const auto fast = [](uint64_t) { return us(5); };
  const auto runs =
      runs_of(log_of({.environment = message("NCCL_ALGO set by environment to Ring")}, fast) +
              log_of({.program = "/opt/reduce_scatter_perf_mpi", .hosts = 2}, fast) +
              log_of({.program = "alltoall_perf"}, fast));
  cr_assert_eq(runs.size(), 3);
  cr_expect(runs[0].limits.text() == "NCCL_ALGO=Ring" && runs[1].limits.text().empty());
  cr_expect(runs[1].collective == Collective::reduce_scatter && runs[1].ranks == 16);
  cr_expect(!runs[2].collective && runs[2].program == "alltoall_perf");
  cr_expect(runs[1].line > runs[0].line);
}

Test(logs, rows_that_cannot_be_read_are_counted) {
  const std::string half = row_half(64, us(7)), good = row_begin(128) + half + half + "\n";
  const auto skipped = [&](const std::string& row) {
    const auto run = run_of(header({}) + row + good + footer());
    cr_expect_eq(run.outcomes.size(), 2, "%s", row.c_str());
    return run.skipped.empty() ? "" : run.skipped[0];
  };
  const std::string head = "1 row that cannot be read (line 18: ";
  const auto expect_skipped = [&](const std::string& row, const std::string& why) {
    const std::string told = skipped(row);
    cr_expect(told == head + why + ")", "%s: %s", row.c_str(), told.c_str());
  };
  expect_skipped(row_begin(64) + half + "  seven  0.01  0.01  0\n", "'seven' is no time");
  expect_skipped(row_begin(64) + half + "  0.00  0.01  0.01  0\n", "'0.00' is no time");
  expect_skipped(" -8 -2 float sum -1" + half + half + "\n", "'-8' is no size");
  expect_skipped(" 1.5e03 256 float sum -1" + half + half + "\n", "'1.5e03' is no size");
  expect_skipped(row_begin(64) + half + half + half + "\n",
                 "a row of 17 words, where the columns are 13");
  cr_expect(skipped("").empty());
  expect_error("hello\n", "has no run of nccl-tests in it, and is no log of outcomes");
  expect_error("", "has no run of nccl-tests in it, and is no log of outcomes");
}

Test(logs, a_run_that_was_killed_in_the_middle_of_a_row_ended_early) {
  const SyntheticLog of{.least = 64, .most = 64};
  const std::string row = row_begin(64) + row_half(64, us(7)) + row_half(64, us(8)) + "\n";
  const auto run = run_of(header(of) + row + row_begin(128) + row_half(128, us(9)));
  cr_expect(!run.ended && run.outcomes.size() == 2);
}

// Errors go on where the row was begun.
Test(logs, after_a_run_that_failed_in_a_row_the_next_is_read) {
  const SyntheticLog of{.least = 64, .most = 64};
  const std::string row = row_begin(64) + row_half(64, us(7)) + row_half(64, us(8)) + "\n";
  for (const std::string error :
       {"node0: Test NCCL failure common.cu:303 'unhandled cuda error'\n .. node0 pid 1000: Test "
        "failure common.cu:401\n",
        "\nslurmstepd: error: *** STEP 1.0 ON node0 CANCELLED ***\n", "\n# something\n"}) {
    const auto runs =
        runs_of(header(of) + row + row_begin(128) + error + header(of) + row + footer());
    cr_assert_eq(runs.size(), 2);
    cr_expect(!runs[0].ended && runs[0].outcomes.size() == 2, "%s", error.c_str());
    cr_expect(runs[1].ended && runs[1].outcomes.size() == 2 && runs[1].skipped.empty());
  }
}

Test(logs, runs_whose_times_are_not_of_one_collective_are_unfit) {
  const std::string text = log_of({.least = 64, .most = 64}, [](uint64_t) { return us(5); });
  cr_expect(run_of(text).unfit.empty());
  const auto expect_unfit = [](const std::string& changed, const std::string& option) {
    const std::string why = run_of(changed).unfit;
    cr_expect(why.find("(" + option) != why.npos, "%s: '%s'", option.c_str(), why.c_str());
  };
  expect_unfit(with(text, "agg iters: 1", "agg iters: 4"), "-m");
  expect_unfit(with(text, "graph: 0", "graph: 1"), "-G");
  expect_unfit(with(text, "# Using", "# Blocking Enabled: wait for completion\n# Using"), "-z");
  expect_unfit(with(text, "    time ", " cputime "), "-C");
  expect_unfit("+ srun ./build/all_reduce_perf -b 8 -a 2\n" + text, "-a");
  cr_expect(run_of("+ srun ./build/all_reduce_perf -b 8 -a 3\n" + text).unfit.empty());
  for (const std::string after :
       {"&& ./all_gather_perf -a 2", "| grep -a 2", "2>&1; ./analyse -a 2"})
    cr_expect(run_of("+ srun ./build/all_reduce_perf -b 8 " + after + "\n" + text).unfit.empty());
  for (const std::string typed : {"-R2", "-R\",\"2", "--local_register=2", "--local_reg\",\"2"})
    expect_unfit(with(kJson, "\"-b\"", "\"" + typed + "\",\"-b\""), "-R");
  expect_unfit(with(kJson, "\"ngpus\"", "\"blocking_collectives\":\"true\",\"ngpus\""), "-z");
  expect_unfit(with(kJson, "\"ngpus\"", "\"graph\":1,\"ngpus\""), "-G");
}

Test(logs, ranks_are_counted_by_their_lines) {
  std::string text =
      log_of({.hosts = 2, .least = 1 << 20, .most = 1 << 20}, [](uint64_t) { return us(5); });
  // In containers each process is the first.
  std::string contained = text;
  for (int rank = 0; rank < 16; rank++)
    contained = with(contained, fmt::format("Pid {:6}", 1000 + rank), "Pid      1");
  cr_expect(run_of(contained).ranks == 16 && run_of(contained).unfit.empty());
  const std::string gap = run_of(with(text, rank_line(3, 0, 3), "")).unfit;
  cr_expect(gap.starts_with("of its 16 ranks it tells of 15:"), "%s", gap.c_str());
  std::string half = text;
  for (uint32_t rank = 8; rank < 16; rank++) half = with(half, rank_line(rank, 1, rank - 8), "");
  const std::string last = run_of(half).unfit;
  cr_expect(last.starts_with("its busbw is 1.875 times its algbw"), "%s", last.c_str());
  for (int rank = 8; rank < 16; rank++)
    text = with(text, rank_line(rank, 1, rank - 8), rank_line(rank, 0, rank - 8));
  const std::string same = run_of(text).unfit;
  cr_expect(same.starts_with("two ranks are on device 7 [0000:17:00] of node0:"), "%s",
            same.c_str());
}

Test(logs, what_puts_logs_together_is_taken_off) {
  const std::string text = log_of({.least = 8, .most = 1024}, [](uint64_t) { return us(5); });
  for (const auto& [begin, end] :
       {std::pair<std::string, std::string>("2024-05-01T12:00:00.123456789Z ", ""),
        {"[pod/launcher/x] ", ""},
        {"May  1 12:00:00 node0 run[17]: ", ""},
        {"\x1b[32m", "\x1b[0m"}}) {
    std::string put;
    for (size_t at = 0, next; at < text.size(); at = next + 1) {
      next = text.find('\n', at);
      put += begin + text.substr(at, next - at) + end + "\n";
    }
    const auto run = run_of(put);
    cr_expect(run.outcomes.size() == 16 && run.ranks == 8 && run.ended, "%s", begin.c_str());
  }
}

Test(logs, values_out_of_bounds_are_told_also_by_a_word) {
  const std::string text = log_of({.least = 64, .most = 64}, [](uint64_t) { return us(5); });
  cr_expect_eq(run_of(with(text, "values : 0 OK", "values : -1 FAILED")).out_of_bounds, 1);
  cr_expect_eq(run_of(with(kJson, "\"count\":3", "\"count\":-1")).out_of_bounds, 1);
}

Test(logs, programs_that_were_started_together_without_mpi_are_refused) {
  const std::string one = header({.gpus = 1});
  expect_error(header({.gpus = 1}) + rank_line(0, 0, 0),
               "line 11: rank 0 is told twice: were programs that were built without MPI=1 started "
               "together? Each of them is a job of its own");
}

Test(logs, older_logs_do_not_say_which_collective_it_was) {
  const auto all_reduce =
      run_of(old_log(kOldReduce, " 64 16 float sum -1 9.0 0.01 0.015 0e+00 8.0 0.01 0.015 0e+00"));
  cr_expect(all_reduce.collective == Collective::all_reduce);
  cr_expect(all_reduce.ranks == 4 && all_reduce.gpus_per_process == 4 && all_reduce.hosts == 1);
  const auto scatter =
      run_of(old_log(kOldReduce, " 64 4 float sum -1 9.0 0.01 0.0075 0e+00 8.0 0.01 0.0075 N/A"));
  cr_expect(scatter.collective == Collective::reduce_scatter);
  const auto reduce =
      run_of(old_log(kOldReduce, " 64 16 float sum 0 9.0 0.01 0.01 0e+00 8.0 0.01 0.01 0e+00"));
  cr_expect(reduce.collective == Collective::reduce);
  const std::string gather =
      old_log(kOldGather, " 64 4 float 9.0 0.01 0.0075 0e+00 8.0 0.01 0.0075 0e+00");
  cr_expect(!run_of(gather).collective && run_of(gather).program.empty());
  cr_expect(run_of(gather, {{"collective", "AllGather"}}).collective == Collective::all_gather);
  cr_expect(run_of(gather, {{"collective", "alltoall"}}).program == "alltoall_perf");
  cr_expect(run_of("+ mpirun -np 1 ./build/all_gather_perf -g 4\n" + gather).collective ==
            Collective::all_gather);
}

Test(logs, what_a_log_tells_wins) {
  const ToldOfLog told{{"collective", "broadcast"}};
  const std::string text = log_of({.least = 64, .most = 64}, [](uint64_t) { return us(5); });
  cr_expect(run_of(text, told).collective == Collective::all_reduce);
  cr_expect(run_of(kJson, told).collective == Collective::all_gather);
  const std::string silent = with(kJson, "\"build\\/all_gather_perf\",\"-b\",\"8\"", "");
  cr_expect(run_of(silent, told).collective == Collective::broadcast);
}

Test(logs, what_cannot_be_told_is_refused) {
  const auto expect_refused = [](const ToldOfLog& told, const std::string& expected) {
    MeasuredRun run;
    const Status status = tell(run, told);
    cr_expect(!status && status.error().text == expected, "%s",
              status ? "none" : status.error().text.c_str());
  };
  expect_refused({{"NCCL_ALGO", "Ring"}, {"NCCL_ALGO", "Tree"}},
                 "NCCL_ALGO is told twice of one log");
  expect_refused({{"NCCL_NVLS_ENABLE", "banana"}}, "NCCL_NVLS_ENABLE=banana: is no number");
  expect_refused({{"NCCL_DEBUG", "INFO"}},
                 "NCCL_DEBUG: of a log can be told collective, NCCL_ALGO, NCCL_PROTO and "
                 "NCCL_NVLS_ENABLE");
}

Test(logs, json_tells_the_same) {
  const auto run = run_of(kJson);
  cr_expect(run.collective == Collective::all_gather && run.version == (NcclVersion{2, 28, 9}));
  cr_expect(run.ranks == 4 && run.hosts == 2 && run.gpus_per_process == 2 && run.ended);
  cr_expect_str_eq(run.limits.text().c_str(), "NCCL_ALGO=Ring NCCL_PROTO=LL,Simple");
  cr_assert_eq(run.outcomes.size(), 2);
  cr_expect(run.outcomes[1].in_place && run.outcomes[1].wrong == 3 && run.outcomes[1].line == 2);
  expect_time(run.outcomes[0], 12.5);
  expect_error("{\"config\":{\"nthreads\":1,\"ngpus\":1}}", "'results' is needed, a list");
  expect_error("{\"results\":[]}", "'config' needs 'nthreads' and 'ngpus'");
}

Test(logs, results_that_cannot_be_read_are_counted) {
  const auto run = run_of(with(kJson, "\"time\":12.5", "\"time\":\"nan\""));
  cr_assert_eq(run.skipped.size(), 1);
  cr_expect_str_eq(run.skipped[0].c_str(),
                   "1 result that cannot be read (result 2: 'time' must be a number above 0, and "
                   "'nwrong' one)");
  cr_expect_eq(run.outcomes.size(), 1);
  cr_expect_eq(run_of(with(kJson, "\"nwrong\":3.000000", "\"nwrong\":\"7\"")).outcomes[1].wrong, 7);
}

Test(logs, json_that_was_cut_off_is_an_error) {
  Logs logs;
  const Status added = logs.add(kJson.substr(0, kJson.size() - 100), "log");
  cr_assert(!added);
  cr_expect(added.error().text.starts_with("cannot be read as JSON, or its program ended"));
}

// The last rank to come is the one that does not wait.
Test(logs, outcomes_take_the_least_time_of_all_ranks) {
  Logs logs;
  cr_assert(logs.add(outcome(0, 1, 1, "30.5") + outcome(0, 2, 2, "20"), "rank0"));
  cr_assert(logs.add(outcome(1, 1, 1, "12.5") + outcome(1, 2, 2, "null"), "rank1"));
  const auto runs = logs.runs();
  cr_assert_eq(runs.size(), 1);
  cr_expect(runs[0].on_gpu && runs[0].ranks == 2 && runs[0].nodes == 1 && runs[0].hosts == 0);
  cr_expect_str_eq(runs[0].file.c_str(), "rank0 and 1 more");
  cr_assert_eq(runs[0].outcomes.size(), 1);
  expect_time(runs[0].outcomes[0], 12.5);
  cr_expect(runs[0].outcomes[0].ran == (NcclPair{Algorithm::ring, Protocol::ll}));
  cr_expect(runs[0].skipped ==
            std::vector<std::string>{"1 collective without a time of each rank"});
}

Test(logs, outcomes_that_shared_a_kernel_are_left_out) {
  const auto run = run_of(outcomes(7, 1, "10") + outcomes(7, 2, "11") + outcomes(8, 3, "12") +
                          outcomes(7, 9, "13", "0xdef"));
  cr_assert_eq(run.outcomes.size(), 2);
  expect_time(run.outcomes[0], 12);
  expect_time(run.outcomes[1], 13);
  cr_expect(run.skipped ==
            std::vector<std::string>{"2 collectives that shared a kernel with others"});
}

Test(logs, a_log_of_outcomes_that_is_given_twice_counts_once) {
  Logs logs;
  const std::string silent = outcomes(1, 1, "null"), text = outcomes(1, 1, "10");
  for (const std::string& one : {silent, text, text}) cr_assert(logs.add(one, "log"));
  const auto runs = logs.runs();
  cr_assert(runs.size() == 1 && runs[0].outcomes.size() == 1);
  cr_expect(runs[0].skipped == std::vector<std::string>{"4 lines given twice"});
}

Test(logs, what_outcomes_are_left_out_is_told) {
  const auto expect_skipped = [](const std::string& text, const std::string& why) {
    const auto run = run_of(text);
    cr_expect(
        run.outcomes.empty() && run.skipped == std::vector<std::string>{"1 collective " + why},
        "%s", why.c_str());
  };
  expect_skipped(outcome(1, 1, 1, "10"), "in the logs of 1 of 2 ranks, where all are needed");
  expect_skipped(outcomes(1, 1, "-5"), "without a time of each rank");
  const std::string one = outcome(0, 1, 1, "10"), other = outcome(1, 1, 1, "10");
  for (const auto& [was, is] : {std::pair<std::string, std::string>("1024", "2048"),
                                {"\"ring\"", "\"tree\""},
                                {"\"ranks\":2", "\"ranks\":4"}})
    expect_skipped(one + with(other, was, is), "of which lines contradict each other");
  expect_skipped(with(one, "ring", "foo") + with(other, "ring", "foo"),
                 "of an algorithm that is not known");
  const auto no_model = run_of(with(one, "all_reduce", "send_recv"));
  cr_expect(!no_model.collective && no_model.program == "send_recv");
}

// A job that is killed, or a full disk, cuts the last one off.
Test(logs, outcomes_that_cannot_be_read_are_counted) {
  const std::string good = outcomes(1, 1, "10");
  const auto expect_told = [&](const std::string& text, const std::string& why) {
    const auto run = run_of(text);
    cr_expect(run.outcomes.size() == 1 && run.skipped == std::vector<std::string>{why}, "%s: %s",
              why.c_str(), run.skipped.empty() ? "none" : run.skipped[0].c_str());
  };
  expect_told(good + "{\"schema\":1,\"commu",
              "1 line that cannot be read (log: line 3: is no object of JSON, or not all of one)");
  expect_told("hello\n" + good + "hello\n",
              "2 lines that cannot be read (log: line 1: is no object of JSON, or not all of one)");
  expect_told("{\"communicator\":\"0x1\"}\n" + good,
              "1 line that cannot be read (log: line 1: 'schema' is needed)");
  expect_told(good + with(outcome(0, 2, 2, "10"), "\"schema\":1", "\"schema\":2"),
              "1 line that cannot be read (log: line 3: this release reads schema 1)");
  expect_error("{\"communicator\":\"0x1\"}\n",
               "has no line that can be read: line 1: 'schema' is needed");
}

Test(logs, of_a_log_of_outcomes_nothing_is_told) {
  Logs logs;
  const Status added = logs.add(outcomes(1, 1, "10"), "log", {{"NCCL_ALGO", "Tree"}});
  cr_expect(!added && added.error().code == Code::unsupported);
}

Test(limits, are_read_as_nccl_reads_its_variables) {
  NcclLimits limits;
  cr_assert(limits.set("NCCL_ALGO", "ring,nvlstree;allreduce:^Tree;broadcast:ring"));
  const auto allows = [&](Collective collective, Algorithm algorithm) {
    return limits.allows(collective, {algorithm, Protocol::simple});
  };
  cr_expect(allows(Collective::all_gather, Algorithm::nvls_tree));
  cr_expect(!allows(Collective::all_gather, Algorithm::nvls));
  cr_expect(allows(Collective::all_reduce, Algorithm::nvls));
  cr_expect(!allows(Collective::all_reduce, Algorithm::tree));
  cr_expect(!allows(Collective::broadcast, Algorithm::nvls_tree));
  const Status unknown = limits.set("NCCL_PROTO", "LL256");
  cr_expect(!unknown && unknown.error().text == "NCCL_PROTO=LL256: NCCL knows no 'LL256'");
  const Status late = limits.set("NCCL_PROTO", "LL;Simple");
  cr_expect(!late && late.error().text ==
                         "NCCL_PROTO=LL;Simple: 'Simple' is for no function; only the first list "
                         "may be");
}

Test(logs, an_old_releases_numbers_are_its_algorithms) {
  const auto run = run_of(log_of(
      {.least = 64, .most = 64, .environment = message("64 Bytes -> Algo 1 proto 0 time 6.100000")},
      [](uint64_t) { return us(9); }));
  cr_expect(run.outcomes[0].ran == (NcclPair{Algorithm::ring, Protocol::ll}));
}

// NCCL tells a rank's share where nccl-tests tells the whole.
Test(logs, shares_of_ranks_are_matched_to_whole_buffers) {
  const auto run = run_of(
      log_of({.program = "all_gather_perf",
              .least = 512,
              .most = 512,
              .environment = message("AllGather: 64 Bytes -> Algo RING proto LL128 channel{Lo..Hi}="
                                     "{0..1}")},
             [](uint64_t) { return us(9); }));
  cr_expect(run.outcomes[0].ran == (NcclPair{Algorithm::ring, Protocol::ll128}));
}
