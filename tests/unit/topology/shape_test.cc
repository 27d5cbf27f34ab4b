// SPDX-License-Identifier: Apache-2.0
#include "topology/shape.h"

#include <criterion/criterion.h>

using namespace crosstie;

namespace {

Shape shape_of(Shape::Facts facts) { return *Shape::make(facts); }

}  // namespace

Test(shape, a_regular_shape_is_host_by_host) {
  const Shape shape = *Shape::regular(3, 4);
  cr_assert(shape.ranks() == 12 && shape.hosts().size() == 3 && shape.domains() == 3);
  for (uint32_t rank = 0; rank < 12; rank++) {
    const Shape::Place& place = shape.place(rank);
    cr_assert(place.host == rank / 4 && place.local == rank % 4 && place.domain == rank / 4);
    cr_assert(shape.hosts()[place.host].ranks[place.local] == rank);
  }
  cr_assert(shape.same_host(4, 7) && !shape.same_host(3, 4));
}

Test(shape, unequal_hosts_are_counted_as_they_are) {
  const Shape shape = shape_of({{0, 1, 1, 1, 2, 2}, {}, {}});
  cr_assert_eq(shape.most_ranks_on_a_host(), 3);
}

Test(shape, a_regular_shape_of_nothing_or_of_too_much_is_refused) {
  for (const auto& [hosts, ranks] :
       {std::pair(0u, 8u), {8u, 0u}, {65536u, 65536u}, {65537u, 65537u}}) {
    const auto shape = Shape::regular(hosts, ranks);
    cr_assert_not(shape.has_value(), "%u x %u", hosts, ranks);
    cr_assert(shape.error().text.find(fmt::format("{} hosts", hosts)) == 0);
  }
}

Test(shape, hosts_and_domains_are_numbered_by_their_lowest_rank_whatever_the_labels) {
  const Shape shape = shape_of({{7, 3, 7, 3}, {9, 9, 1, 9}, {}});
  cr_assert(shape.place(0).host == 0 && shape.place(1).host == 1 && shape.place(2).host == 0);
  cr_assert(shape.hosts()[0].ranks == std::vector<uint32_t>({0, 2}));
  cr_assert(shape.place(3).local == 1);
  cr_assert(shape.place(2).domain == 1 && shape.domains() == 2);
}

Test(shape, equal_facts_have_equal_digests_whatever_the_labels) {
  const uint64_t digest = shape_of({{0, 0, 1}, {}, {}}).digest();
  cr_assert_eq(shape_of({{5, 5, 2}, {}, {}}).digest(), digest);
  cr_assert_eq(shape_of({{0, 0, 1}, {4, 4, 3}, {}}).digest(), digest);
}

Test(shape, the_digest_tells_hosts_domains_and_rails_apart) {
  const uint64_t digest = shape_of({{0, 0, 1}, {}, {}}).digest();
  cr_assert_neq(shape_of({{0, 1, 1}, {}, {}}).digest(), digest);
  cr_assert_neq(shape_of({{0, 0, 1}, {0, 0, 0}, {}}).digest(), digest);
  cr_assert_neq(shape_of({{0, 0, 1}, {}, {{gigabits(400)}}}).digest(), digest);
  cr_assert_neq(shape_of({{0, 0, 1}, {}, {{}, {gigabits(400)}}}).digest(),
                shape_of({{0, 0, 1}, {}, {{gigabits(400)}}}).digest());
}

// But for the counts that come first, the digest is of the same numbers here.
Test(shape, the_digest_does_not_take_rails_for_ranks) {
  cr_assert_neq(shape_of({{0, 1, 2}, {}, {{{2}}}}).digest(),
                shape_of({{0, 1}, {}, {{{2}, {1}}, {{0}, {0}}}}).digest());
}

Test(shape, rails_are_those_of_the_hosts_label) {
  const Shape shape = shape_of({{1, 0}, {}, {{gigabits(100)}, {gigabits(400), gigabits(400)}}});
  cr_assert_eq(shape.hosts()[0].rails.size(), 2);
  cr_assert_eq(shape.hosts()[1].rails.size(), 1);
  cr_assert(shape_of({{8, 8}, {}, {{gigabits(100)}}}).hosts()[0].rails.empty());
}

Test(shape, facts_without_ranks_or_of_unequal_length_are_refused) {
  cr_assert_not(Shape::make({}).has_value());
  const auto unequal = Shape::make({{0, 0, 1}, {0, 0}, {}});
  cr_assert_not(unequal.has_value());
  cr_assert(unequal.error().text.find("3 ranks but 2") != std::string::npos);
}
