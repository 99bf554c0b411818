"""The kill campaign: kills, full disks, lost folders, company and clocks that jump."""
