// SPDX-License-Identifier: Apache-2.0
#include "choice/preference.h"

namespace crosstie {
namespace {

Seconds of_bytes(const Prediction& prediction) {
  Seconds sum{};
  for (const Term& term : prediction.terms())
    if (term.name.starts_with("bytes")) sum += term.time;
  return sum;
}

// Switches that reduce do so in place of the GPUs' multiprocessors.
bool reduces_in_switches(Algorithm algorithm) {
  return algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree ||
         algorithm == Algorithm::collnet_direct || algorithm == Algorithm::collnet_chain;
}

// By how much it misses the aim. Latency: what waits, whatever the links carry. Bandwidth: how long
// the links are taken from others. Compute: how long multiprocessors are.
Seconds missed(Aim aim, Algorithm algorithm, const Prediction& prediction) {
  if (aim == Aim::latency) return prediction.time() - of_bytes(prediction);
  if (aim == Aim::bandwidth) return of_bytes(prediction);
  if (aim == Aim::compute && !reduces_in_switches(algorithm)) return prediction.time();
  return Seconds(0);
}

}  // namespace

Preference preference(const ClassPolicy& policy, Algorithm algorithm, const Prediction& prediction,
                      Seconds least) {
  const Seconds time = prediction.time();
  if (time > least * (1 + policy.worth)) return {true, Seconds(0), time};
  return {false, missed(policy.aim, algorithm, prediction), time};
}

}  // namespace crosstie
