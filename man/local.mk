# SPDX-License-Identifier: Apache-2.0
nodist_man_MANS = man/crosstie.1
man/crosstie.1: tools/manual$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) man && tools/manual$(EXEEXT) $(CROSSTIE_DATE) >$@.tmp && mv $@.tmp $@
CLEANFILES += man/crosstie.1 man/crosstie.1.tmp
