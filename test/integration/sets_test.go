package integration

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// setVariable is the environment variable with the set of tests to run. If it is empty, all tests
// run.
const setVariable = "TEST_SET"

// setRest is the set of all tests that are neither in setFields nor in setAlone.
const (
	setFields = "fields"
	setAlone  = "alone"
	setOldest = "oldest"
	setRest   = "rest"
)

// testSets are the tests that `make test-integration` and `make test-oldest` run in processes of
// their own, each with an API server and an operator.
var testSets = map[string][]string{
	// These tests set or change every field. Their operator has no race detector, because they test
	// values: the other tests cover the goroutines that process these fields. In
	// TestOneNamespaceWithoutAccess, 280 watches begin again at once. With the race detector, that
	// can take longer than the lease of the leader.
	setFields: {
		"TestDocumentationExamples", "TestDriftInEveryField", "TestFields", "TestFormsOfFields", "TestOneNamespaceWithoutAccess",
		"TestStorageModel", "TestWhatCanBeStoredCanBeRead",
	},
	// These tests restart the operator, run one after another, and mostly wait.
	setAlone: {
		"TestCertificateIsFollowedAndRenewed", "TestConversionCannotBeTakenAway", "TestConversionComesBack",
		"TestConversionThatOLMDefers", "TestFleetGoesOnWithTheNextImage", "TestFleetOfOneTenantStopsNoOther",
		"TestFleetRollsABoundedNumberAtATime", "TestFleetRollsToAnotherPodTemplate", "TestHandoverAfterCleanStop", "TestKilledOperator",
		"TestKilledWhileItRenames", "TestOnlyTheLeaderEnds", "TestOutdatedCertificateIsReplaced", "TestPatchesWhileAdmissionIsAway",
		"TestReplicasAgreeOnACertificate", "TestStandbyWatchesNothing", "TestStoredValuesThatNewRulesRefuse", "TestTheGatewayAPIComesAndGoes",
		"TestThePrometheusOperatorComesAndGoes",
	},
	// The results of these tests depend on the version of the API server: schemas and their rules,
	// admission, conversion, pruning, server-side apply, dry runs, quotas. On the newest API
	// server, they run in the other sets.
	setOldest: {
		"TestAdmissionChangesNoNewObject", "TestAdmissionIsAway", "TestAdmissionOfV1alpha1KnowsTheRest", "TestAdmissionRefuses",
		"TestAdmissionRefusesPatches", "TestAdmissionRefusesTransitionsOfTheService", "TestAdmissionTakes",
		"TestAdmissionTakesNoVerdictOfOthers", "TestApplierAtV1alpha2Drops", "TestApplierChangesItsVersion", "TestAppliersInBothVersions",
		"TestApplyTwiceChangesNothing", "TestConversionCannotBeTakenAway", "TestConversionComesBack", "TestDefaultsInsideLists",
		"TestDocumentationExamples", "TestDriftInEveryField", "TestFamiliesOfTheService", "TestFields",
		"TestFieldsTakenOutWhileTheOperatorIsAway", "TestForeignFieldsStay", "TestFormsOfFields", "TestMetricsBehindAlertsOnWebhooks",
		"TestMultiTenancy", "TestOwnWebhooks",
		"TestPatches", "TestPlanComesTrue", "TestPlanOfWhatIsNew", "TestPlanShowsEveryRefusal", "TestQuota",
		"TestRestoreAtV1alpha1", "TestSamples", "TestSchemaRefuses", "TestSchemaTakesTheBounds", "TestStatusOfRefusedChildren",
		"TestStorageModel", "TestStoredValuesThatNewRulesRefuse", "TestUnreadableObjectsFailAlone", "TestV1alpha1Warning",
		"TestV1alpha1WriteFailsWithoutAdmission", "TestV1alpha1WritesLoseNothing", "TestVerdictOfTheAPIServer", "TestWatchInBothVersions",
		"TestWatchNamespaces", "TestWhatCanBeStoredCanBeRead",
	},
}

// selectSet selects the tests of a set. It returns the name of the program to run as the operator.
func selectSet(set string) (program string, err error) {
	exactly := func(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }
	switch {
	case set == "":
		return "test/manager-race", nil
	case set == setRest:
		return "test/manager-race", flag.Set("test.skip", exactly(slices.Concat(testSets[setFields], testSets[setAlone])))
	case testSets[set] == nil:
		return "", fmt.Errorf("%s is %q, which is no set of tests", setVariable, set)
	case set == setAlone:
		program = "test/manager-race"
	default:
		program = "test/manager"
	}
	return program, flag.Set("test.run", exactly(testSets[set]))
}

// TestSets verifies that each test of a set exists. A renamed test would not run otherwise.
func TestSets(t *testing.T) {
	t.Parallel()
	existing := strings.Fields(string(must1(exec.Command(os.Args[0], "-test.list=.").Output())(t)))
	for set, tests := range testSets {
		for _, test := range tests {
			if !slices.Contains(existing, test) {
				t.Errorf("the set %s has %s, which does not exist", set, test)
			}
		}
	}
}
